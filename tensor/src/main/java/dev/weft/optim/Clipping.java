package dev.weft.optim;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Foreach;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Statistics;
import java.util.ArrayList;
import java.util.List;

/** Bounds on gradients. Any thread; distributed gradients need all their ranks. */
public final class Clipping {
  private Clipping() {}

  /** The 2-norm of all gradients together, summed in double. */
  public static double gradNorm(List<Tensor> parameters) {
    return Autograd.noGrad(
        () -> {
          TensorScope scope = TensorScope.open();
          try {
            List<Tensor> together = onOneGpu(parameters);
            if (!together.isEmpty()) {
              return Math.sqrt(Foreach.squares(together).item());
            }
            double sum = 0;
            for (Tensor p : parameters) {
              Tensor g = p.grad();
              if (g != null) {
                double norm = Statistics.norm(g).item();
                sum += norm * norm;
              }
            }
            return Math.sqrt(sum);
          } finally {
            scope.close();
          }
        });
  }

  /** The gradients where all are plain tensors of one GPU, else none. */
  private static List<Tensor> onOneGpu(List<Tensor> parameters) {
    List<Tensor> gradients = new ArrayList<>();
    for (Tensor p : parameters) {
      Tensor g = p.grad();
      if (g == null) {
        continue;
      }
      boolean fits =
          g.kind() == null
              && g.device().isCuda()
              && (gradients.isEmpty() || g.device().equals(gradients.get(0).device()));
      if (!fits) {
        return List.of();
      }
      gradients.add(g);
    }
    return gradients;
  }

  /**
   * Multiplies all gradients by min(1, maxNorm / (norm + 1e-6)).
   *
   * @return their norm before; reading it waits for a GPU, {@link #clip} does not
   */
  public static double clipGradNorm(List<Tensor> parameters, double maxNorm) {
    List<Tensor> together = onOneGpu(parameters);
    if (!together.isEmpty()) {
      return Autograd.noGrad(
          () -> {
            TensorScope scope = TensorScope.open();
            try {
              Tensor square = Foreach.squares(together);
              Foreach.clip(together, square, maxNorm);
              return Math.sqrt(square.item());
            } finally {
              scope.close();
            }
          });
    }
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

  /** {@link #clipGradNorm} without the norm: gradients on one GPU are clipped without waiting. */
  public static void clip(List<Tensor> parameters, double maxNorm) {
    List<Tensor> together = onOneGpu(parameters);
    if (together.isEmpty()) {
      double unused = clipGradNorm(parameters, maxNorm);
      return;
    }
    Autograd.noGrad(
        () -> {
          TensorScope scope = TensorScope.open();
          try {
            Foreach.clip(together, Foreach.squares(together), maxNorm);
          } finally {
            scope.close();
          }
        });
  }
}
