package dev.weft.optim;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Bounds on gradients, of plain and distributed parameters together. Any thread; where some are
 * distributed, all ranks of their meshes call alike, and all get the same norm.
 */
public final class Clipping {
  private Clipping() {}

  /**
   * The 2-norm of all gradients together, over all ranks. Squares are summed in float64.
   *
   * @param parameters those without a gradient do not count
   */
  public static double gradNorm(Iterable<? extends Tensor> parameters) {
    return Autograd.noGrad(
        () -> {
          try (TensorScope scope = TensorScope.open()) {
            double sum = 0;
            Map<TensorKind, List<Tensor>> distributed = new LinkedHashMap<>();
            for (Tensor p : parameters) {
              TensorKind kind = p.kind();
              Tensor g = p.grad();
              if (kind != null) {
                distributed.computeIfAbsent(kind, k -> new ArrayList<>()).add(p);
              } else if (g != null) {
                sum += squares(g).item();
              }
            }
            for (Map.Entry<TensorKind, List<Tensor>> e : distributed.entrySet()) {
              sum += e.getKey().squaredGradNorm(e.getValue());
            }
            return Math.sqrt(sum);
          }
        });
  }

  private static Tensor squares(Tensor gradient) {
    Tensor wide = Casts.to(gradient, DType.FLOAT64);
    return Reductions.sum(Pointwise.mul(wide, wide));
  }

  /**
   * Multiplies all gradients by min(1, maxNorm / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
   *
   * @return their norm before
   */
  public static double clipGradNorm(Iterable<? extends Tensor> parameters, double maxNorm) {
    if (!(maxNorm >= 0)) {
      throw new IllegalArgumentException("maxNorm is " + maxNorm + "; expected 0 or more");
    }
    double norm = gradNorm(parameters);
    float scale = (float) (maxNorm / (norm + 1e-6));
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
