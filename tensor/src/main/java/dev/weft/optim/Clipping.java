package dev.weft.optim;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Statistics;
import java.util.List;

/** Bounds on gradients. Any thread; distributed gradients need all their ranks. */
public final class Clipping {
  private Clipping() {}

  /** The 2-norm of all gradients together, summed in double. */
  public static double gradNorm(List<Tensor> parameters) {
    return Autograd.noGrad(
        () -> {
          double sum = 0;
          TensorScope scope = TensorScope.open();
          try {
            for (Tensor p : parameters) {
              Tensor g = p.grad();
              if (g != null) {
                double norm = Statistics.norm(g).item();
                sum += norm * norm;
              }
            }
          } finally {
            scope.close();
          }
          return Math.sqrt(sum);
        });
  }

  /**
   * Multiplies all gradients by min(1, maxNorm / (norm + 1e-6)).
   *
   * @return their norm before
   */
  public static double clipGradNorm(List<Tensor> parameters, double maxNorm) {
    double norm = gradNorm(parameters);
    double scale = maxNorm / (norm + 1e-6);
    if (scale < 1) {
      Autograd.noGrad(
          () -> {
            for (Tensor p : parameters) {
              Tensor g = p.grad();
              if (g != null) {
                Tensor unused = InPlace.mul(g, scale);
              }
            }
          });
    }
    return norm;
  }
}
