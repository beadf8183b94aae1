package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Foreach;
import dev.weft.tensor.op.InPlace;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What training needs of the gradients of parameters, some of which are distributed: the one place
 * where a gradient that is still outstanding is settled, and the norm over all of them. Called by
 * the thread that acts for a rank; all ranks of the meshes call alike.
 */
public final class Gradients {
  private Gradients() {}

  /** Brings a distributed parameter's gradient to the parameter's placements, if it is not. */
  public static void settle(Tensor parameter) {
    if (parameter instanceof DTensor p && p.grad() instanceof DTensor g) {
      if (!g.placements().equals(p.placements())) {
        parameter.setGrad(Autograd.noGrad(() -> g.redistributeTo(p.placements())));
      }
    }
  }

  /** {@link #settle} for all. */
  public static void settle(Iterable<? extends Tensor> parameters) {
    for (Tensor p : parameters) {
      settle(p);
    }
  }

  /**
   * The 2-norm of all gradients together, over all ranks of their meshes; the same on every rank.
   * Squares are summed in float64, with one all-reduce for each mesh dimension that cuts something.
   */
  public static double norm(Iterable<? extends Tensor> parameters) {
    settle(parameters);
    return Autograd.noGrad(() -> Math.sqrt(sumOfSquares(parameters)));
  }

  private static double sumOfSquares(Iterable<? extends Tensor> parameters) {
    List<Tensor> whole = new ArrayList<>();
    // What is complete once reduced over some dimensions of a mesh.
    Map<DeviceMesh, Map<List<Integer>, List<Tensor>>> open = new LinkedHashMap<>();
    for (Tensor p : parameters) {
      Tensor g = p.grad();
      if (g == null) {
        continue;
      }
      if (g instanceof DTensor d) {
        List<Integer> cut = new ArrayList<>();
        for (int m = 0; m < d.mesh().ndim(); m++) {
          if (d.placements().get(m).isShard() && d.mesh().size(m) > 1) {
            cut.add(m);
          }
        }
        List<Tensor> list =
            cut.isEmpty()
                ? whole
                : open.computeIfAbsent(d.mesh(), m -> new LinkedHashMap<>())
                    .computeIfAbsent(cut, c -> new ArrayList<>());
        list.add(d.local());
      } else {
        whole.add(g);
      }
    }
    double total = squares(whole);
    for (Map.Entry<DeviceMesh, Map<List<Integer>, List<Tensor>>> mesh : open.entrySet()) {
      for (Map.Entry<List<Integer>, List<Tensor>> part : mesh.getValue().entrySet()) {
        Tensor t = Tensor.of(new double[] {squares(part.getValue())});
        for (int m : part.getKey()) {
          mesh.getKey().getGroup(m).allReduce(t, ReduceOp.SUM);
        }
        total += t.item();
      }
    }
    return total;
  }

  /** The sum of squares of local tensors, in float64, read once for each device. */
  private static double squares(List<Tensor> tensors) {
    Map<Device, List<Tensor>> devices = new LinkedHashMap<>();
    for (Tensor t : tensors) {
      devices.computeIfAbsent(t.device(), d -> new ArrayList<>()).add(t);
    }
    double total = 0;
    for (List<Tensor> list : devices.values()) {
      total += Foreach.squares(list).item();
    }
    return total;
  }

  /**
   * Scales all gradients by min(1, maxNorm / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
   *
   * @return the norm before
   */
  public static double clipNorm(Iterable<? extends Tensor> parameters, double maxNorm) {
    double norm = norm(parameters);
    float scale = (float) Math.min(1, maxNorm / (norm + 1e-6));
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
