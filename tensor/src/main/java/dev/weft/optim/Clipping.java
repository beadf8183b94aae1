package dev.weft.optim;

import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Foreach;
import dev.weft.tensor.op.InPlace;
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

  /** Gradients of plain parameters by device, and distributed parameters by kind. */
  private record Sorted(Map<Device, List<Tensor>> plain, Map<TensorKind, List<Tensor>> spread) {
    static Sorted of(Iterable<? extends Tensor> parameters) {
      Sorted sorted = new Sorted(new LinkedHashMap<>(), new LinkedHashMap<>());
      for (Tensor p : parameters) {
        TensorKind kind = p.kind();
        Tensor g = p.grad();
        if (kind != null) {
          sorted.spread.computeIfAbsent(kind, k -> new ArrayList<>()).add(p);
        } else if (g != null) {
          sorted.plain.computeIfAbsent(g.device(), d -> new ArrayList<>()).add(g);
        }
      }
      return sorted;
    }

    double norm() {
      double sum = 0;
      for (List<Tensor> gradients : plain.values()) {
        sum += Foreach.squares(gradients).item();
      }
      for (Map.Entry<TensorKind, List<Tensor>> e : spread.entrySet()) {
        sum += e.getKey().squaredGradNorm(e.getValue());
      }
      return Math.sqrt(sum);
    }
  }

  /**
   * The 2-norm of all gradients together, over all ranks. Squares are summed in float64.
   *
   * @param parameters those without a gradient do not count
   */
  public static double gradNorm(Iterable<? extends Tensor> parameters) {
    return Autograd.noGrad(
        () -> {
          try (TensorScope scope = TensorScope.open()) {
            return Sorted.of(parameters).norm();
          }
        });
  }

  /**
   * Multiplies all gradients by min(1, maxNorm / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
   *
   * @return their norm before; to know it, the host waits for a GPU, which goes on clipping
   */
  public static double clipGradNorm(Iterable<? extends Tensor> parameters, double maxNorm) {
    if (!(maxNorm >= 0)) {
      throw new IllegalArgumentException("maxNorm is " + maxNorm + "; expected 0 or more");
    }
    return Autograd.noGrad(
        () -> {
          try (TensorScope scope = TensorScope.open()) {
            Sorted sorted = Sorted.of(parameters);
            if (sorted.spread.isEmpty() && sorted.plain.size() == 1) {
              List<Tensor> gradients = sorted.plain.values().iterator().next();
              Tensor square = Foreach.squares(gradients);
              Foreach.clip(gradients, square, maxNorm);
              return Math.sqrt(square.item());
            }
            double norm = sorted.norm();
            float scale = (float) (maxNorm / (norm + 1e-6));
            if (scale < 1) {
              for (Tensor p : parameters) {
                Tensor g = p.grad();
                if (g != null) {
                  Tensor unused = InPlace.mul(g, scale);
                }
              }
            }
            return norm;
          }
        });
  }
}
