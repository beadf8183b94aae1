package dev.weft.dtensor;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Cross-entropy of logits [N, C, ...] or [C] whose classes are cut along one mesh dimension; see
 * {@code tp.LossParallel}, which is how users come here. Attributes and inputs are those of the
 * operator {@code cross_entropy}; all ranks of the mesh call it alike.
 */
public final class ParallelCrossEntropy {
  private ParallelCrossEntropy() {}

  // Results: the loss, the softmax (for backward).
  private static final Op OP =
      Op.composite("dtensor.parallel_cross_entropy", ParallelCrossEntropy::forward)
          .gradient(
              new Op.Saves(true, true),
              (ctx, g) -> {
                @Nullable Tensor[] result = new @Nullable Tensor[2];
                if (g[0] != null && ctx.needs(0)) {
                  result[0] =
                      backward(
                          (DTensor) g[0],
                          (DTensor) ctx.input(0),
                          ctx.input(1),
                          (DTensor) ctx.output(1),
                          ctx.attrs());
                }
                return result;
              });

  /**
   * Runs it.
   *
   * @return the loss alone
   */
  public static Tensor[] call(Attrs attrs, Tensor[] inputs) {
    return new Tensor[] {Dispatcher.callAll(OP, attrs, inputs)[0]};
  }

  /** What is the same for forward and backward. */
  private record Parts(
      DTensorSpec logits, int classDim, int meshDim, DTensorSpec target, StridedTensor local) {
    boolean none(Attrs a) {
      return a.get(0, String.class).equals("none");
    }

    long firstClass() {
      return logits.globalOffset()[classDim];
    }

    long classes() {
      return logits.localShape()[classDim];
    }
  }

  private static Parts parts(DTensor logits, Tensor target) {
    int classDim = logits.ndim() == 1 ? 0 : 1;
    DeviceMesh mesh = logits.mesh();
    int meshDim = -1;
    List<Placement> want = new ArrayList<>();
    for (int m = 0; m < mesh.ndim(); m++) {
      Placement p = logits.placements().get(m);
      if (p.isShard(classDim)) {
        if (meshDim >= 0 || !(p instanceof Shard)) {
          throw refused(logits, classDim);
        }
        meshDim = m;
        want.add(Replicate.INSTANCE);
      } else if (p instanceof Shard s) {
        want.add(new Shard(s.dim() == 0 ? 0 : s.dim() - 1));
      } else if (p.isReplicate()) {
        want.add(p);
      } else {
        throw refused(logits, classDim);
      }
    }
    if (meshDim < 0) {
      throw refused(logits, classDim);
    }
    DTensor placed =
        target instanceof DTensor d
            ? d
            : DTensor.distributeTensor(
                target, mesh, java.util.Collections.nCopies(mesh.ndim(), Replicate.INSTANCE), null);
    DTensor moved = placed.redistributeTo(List.copyOf(want));
    return new Parts(logits.spec(), classDim, meshDim, moved.spec(), moved.local());
  }

  private static IllegalArgumentException refused(DTensor logits, int classDim) {
    return new IllegalArgumentException(
        "cross_entropy under LossParallel: logits are "
            + logits.describe()
            + "; expected dimension "
            + classDim
            + " (the classes) to be cut along exactly one mesh dimension, and no Partial");
  }

  private static Tensor[] forward(Tensor[] in, Attrs a) {
    DTensor logits = (DTensor) in[0];
    Parts p = parts(logits, in[1]);
    ProcessGroup group = logits.mesh().getGroup(p.meshDim);
    int dim = p.classDim;
    Tensor x = logits.local();
    Tensor best =
        p.classes() == 0
            ? Creation.fullLike(Reductions.sum(x, new int[] {dim}, true), Double.NEGATIVE_INFINITY)
            : Extrema.amax(x, new int[] {dim}, true);
    Tensor max = reduced(best, ReduceOp.MAX, group);
    Tensor shifted = Pointwise.sub(x, max);
    Tensor exp = Unary.exp(shifted);
    double smoothing = a.isNull(2) ? 0 : a.doubleAt(2);
    Tensor total = reduced(Reductions.sum(exp, new int[] {dim}, true), ReduceOp.SUM, group);
    Tensor logTotal = Unary.log(total);
    Tensor wanted = wantedLogit(p, shifted);
    if (smoothing != 0) {
      // The mean logit enters the same sum.
      Tensor mean =
          Pointwise.div(
              Reductions.sum(shifted, new int[] {dim}, true), (Number) p.logits.shape()[dim]);
      wanted = Pointwise.add(Pointwise.mul(wanted, 1 - smoothing), Pointwise.mul(mean, smoothing));
    }
    wanted = reduced(wanted, ReduceOp.SUM, group);
    Tensor losses = Views.squeeze(Pointwise.sub(logTotal, wanted), dim);
    Tensor ignored = Compare.eq(p.local, a.longAt(1));
    losses = Compare.maskedFill(losses, ignored, 0);
    Tensor softmax = Pointwise.div(exp, total);
    return new Tensor[] {result(p, losses, a), new DTensor(p.logits, (StridedTensor) softmax)};
  }

  private static Tensor reduced(Tensor t, ReduceOp op, ProcessGroup group) {
    return group.size() == 1 ? t : FunctionalCollectives.allReduce(t, op, group);
  }

  /** Targets as positions in this rank's classes, and which of them are elsewhere. */
  private record Own(Tensor index, Tensor elsewhere) {
    static Own of(Parts p) {
      Tensor own = Pointwise.sub(p.local, p.firstClass());
      Tensor elsewhere = Compare.logicalOr(Compare.lt(own, 0), Compare.ge(own, p.classes()));
      Tensor index = Views.unsqueeze(Unary.clamp(own, 0, p.classes() - 1), p.classDim);
      return new Own(index, Views.unsqueeze(elsewhere, p.classDim));
    }
  }

  /** The target's logit where this rank has it, else 0. */
  private static Tensor wantedLogit(Parts p, Tensor shifted) {
    if (p.classes() == 0) {
      return Reductions.sum(shifted, new int[] {p.classDim}, true);
    }
    Own own = Own.of(p);
    return Compare.maskedFill(Indexing.gather(shifted, p.classDim, own.index), own.elsewhere, 0);
  }

  private static Tensor result(Parts p, Tensor losses, Attrs a) {
    DeviceMesh mesh = p.logits.mesh();
    List<Placement> placements = new ArrayList<>(p.target.placements());
    if (p.none(a)) {
      return new DTensor(
          DTensorSpec.of(mesh, List.copyOf(placements), p.target.shape(), losses.dtype()),
          (StridedTensor) losses);
    }
    placements.replaceAll(q -> q.isShard() ? Partial.SUM : q);
    Tensor sum = Reductions.sum(losses);
    if (a.get(0, String.class).equals("mean")) {
      sum = Pointwise.div(sum, Casts.to(count(p, a), sum.dtype()));
    }
    return new DTensor(
        DTensorSpec.of(mesh, List.copyOf(placements), new long[0], sum.dtype()),
        (StridedTensor) sum);
  }

  private static Tensor count(Parts p, Attrs a) {
    return LossRules.counted(p.target, p.local, a.longAt(1));
  }

  private static Tensor backward(
      DTensor gradient, DTensor logits, Tensor target, DTensor softmax, Attrs a) {
    Parts p = parts(logits, target);
    int dim = p.classDim;
    double smoothing = a.isNull(2) ? 0 : a.doubleAt(2);
    Tensor x = softmax.local();
    long classes = p.logits.shape()[dim];
    if (p.classes() > 0) {
      Own own = Own.of(p);
      Tensor ones =
          Compare.maskedFill(
              Creation.fullLike(Casts.to(own.index, x.dtype()), smoothing - 1), own.elsewhere, 0);
      x = Indexing.scatterAdd(x, dim, own.index, ones);
      x = smoothing == 0 ? x : Pointwise.sub(x, smoothing / classes);
    }
    Tensor ignored = Views.unsqueeze(Compare.eq(p.local, a.longAt(1)), dim);
    List<Placement> whole = new ArrayList<>(p.target.placements());
    if (!p.none(a)) {
      java.util.Collections.fill(whole, Replicate.INSTANCE);
    }
    Tensor g = gradient.redistributeTo(List.copyOf(whole)).local();
    if (p.none(a)) {
      g = Views.unsqueeze(g, dim);
    } else if (a.get(0, String.class).equals("mean")) {
      g = Pointwise.div(g, Casts.to(count(p, a), g.dtype()));
    }
    Tensor local = Compare.maskedFill(Pointwise.mul(x, g), ignored, 0);
    return new DTensor(p.logits, (StridedTensor) local);
  }
}
