package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Foreach;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What training needs of the gradients of distributed parameters: the one place where a gradient
 * that is still outstanding is settled. Their norm is {@link dev.weft.optim.Clipping}'s. Called by
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

  /** The sum of squares over all ranks; the same on every rank. */
  static double sumOfSquares(List<Tensor> parameters) {
    settle(parameters);
    // Parts whose sums are complete once reduced over some dimensions of a mesh, perhaps none.
    Map<DeviceMesh, Map<List<Integer>, List<Tensor>>> parts = new LinkedHashMap<>();
    for (Tensor p : parameters) {
      if (p.grad() instanceof DTensor g) {
        parts
            .computeIfAbsent(g.mesh(), m -> new LinkedHashMap<>())
            .computeIfAbsent(cutDims(g), c -> new ArrayList<>())
            .add(g.local());
      }
    }
    double total = 0;
    for (Map.Entry<DeviceMesh, Map<List<Integer>, List<Tensor>>> mesh : parts.entrySet()) {
      for (Map.Entry<List<Integer>, List<Tensor>> part : mesh.getValue().entrySet()) {
        Tensor sum = Foreach.squares(part.getValue());
        for (int m : part.getKey()) {
          Work unused = mesh.getKey().getGroup(m).allReduce(sum, ReduceOp.SUM);
        }
        total += sum.item();
      }
    }
    return total;
  }

  private static List<Integer> cutDims(DTensor t) {
    List<Integer> cut = new ArrayList<>();
    for (int m = 0; m < t.mesh().ndim(); m++) {
      if (t.placements().get(m).isShard() && t.mesh().size(m) > 1) {
        cut.add(m);
      }
    }
    return cut;
  }
}
