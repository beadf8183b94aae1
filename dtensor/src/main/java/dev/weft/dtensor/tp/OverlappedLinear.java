package dev.weft.dtensor.tp;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Backward;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Views;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Linear layers whose collective is split into the pieces that the ranks hold: while one piece is
 * multiplied the next is on its way round the ring (Wang et al., ASPLOS 2023). Equal, but for the
 * order of sums, to an all-gather before or a reduce-scatter after the product; differentiable,
 * split in backward as well. All ranks of the mesh call alike.
 */
public final class OverlappedLinear {
  private OverlappedLinear() {}

  /** Inputs x, weight; attributes ring, dim. */
  private static final Op GATHERED =
      Op.composite("tp.all_gather_linear", OverlappedLinear::gathered)
          .gradient(Op.Saves.INPUTS, OverlappedLinear::gatheredBackward);

  private static final Op SCATTERED =
      Op.composite("tp.linear_reduce_scatter", OverlappedLinear::scattered)
          .gradient(Op.Saves.INPUTS, OverlappedLinear::scatteredBackward);

  /**
   * x weight^T of an x that is gathered on the way.
   *
   * @param x cut evenly along a dimension before the last, on a mesh of one dimension
   * @param weight [out, in], cut along dimension 0
   * @return cut along the last dimension
   */
  public static DTensor allGatherLinear(DTensor x, DTensor weight) {
    int dim = cutDim("allGatherLinear", "x", x, x.placements().get(0));
    requirePlaced("allGatherLinear", "weight", weight, x, Placements.shard(0));
    Tensor out =
        Dispatcher.call(
            GATHERED, Attrs.of(Ring.of(x.mesh(), 0), dim), x.toLocal(), weight.toLocal());
    return wrapped(out, x, weight, Placements.shard(x.ndim() - 1));
  }

  /**
   * x weight^T of an x of which each rank has some features, summed over the ranks on the way.
   *
   * @param x cut along the last dimension, on a mesh of one dimension
   * @param weight [out, in], cut along dimension 1
   * @param dim the dimension along which the result is cut, before the last; it must be even
   */
  public static DTensor linearReduceScatter(DTensor x, DTensor weight, int dim) {
    int d =
        cutDim("linearReduceScatter", "the result", x, Placements.shard(Shapes.dim(dim, x.ndim())));
    requirePlaced("linearReduceScatter", "x", x, x, Placements.shard(x.ndim() - 1));
    requirePlaced("linearReduceScatter", "weight", weight, x, Placements.shard(1));
    Tensor out =
        Dispatcher.call(
            SCATTERED, Attrs.of(Ring.of(x.mesh(), 0), d), x.toLocal(), weight.toLocal());
    return wrapped(out, x, weight, Placements.shard(d));
  }

  private static DTensor wrapped(Tensor out, DTensor x, DTensor weight, Placement placement) {
    long[] shape = x.shape().clone();
    shape[shape.length - 1] = weight.shape()[0];
    return DTensor.fromLocal(
        out,
        x.mesh(),
        List.of(placement),
        DTensor.FromLocal.DEFAULT.withShape(shape, Shapes.contiguousStrides(shape)));
  }

  private static int cutDim(String what, String name, DTensor x, Placement cut) {
    if (x.mesh().ndim() != 1 || !isEvenCut(x, cut)) {
      throw new IllegalArgumentException(
          what
              + ": "
              + name
              + " is cut as "
              + cut
              + " (x is "
              + x.describe()
              + "); expected an even cut of a dimension before the last, on a mesh of one dimension");
    }
    return cut.shardDim();
  }

  /** Whether a tensor can be gathered or scattered piece by piece along a cut. */
  static boolean isEvenCut(DTensor x, Placement cut) {
    return cut.isShard()
        && cut.equals(Placements.shard(cut.shardDim()))
        && cut.shardDim() < x.ndim() - 1
        && x.shape()[cut.shardDim()] % x.mesh().size() == 0;
  }

  private static void requirePlaced(
      String what, String name, DTensor t, DTensor x, Placement expected) {
    if (!t.mesh().equals(x.mesh()) || !t.placements().equals(List.of(expected))) {
      throw new IllegalArgumentException(
          what
              + ": "
              + name
              + " is "
              + t.describe()
              + "; expected it on the mesh of x, placed as ["
              + expected
              + "]");
    }
  }

  // ---- on the parts ----

  private interface Product {
    Tensor of(Tensor piece);
  }

  private interface Sink {
    void take(Tensor piece, int index);
  }

  /** Hands each rank's piece on; the next is on its way while one is worked on. */
  private static void round(Ring ring, Tensor own, Sink sink) {
    Tensor held = own;
    for (int step = 0; step < ring.n(); step++) {
      Tensor next = step < ring.n() - 1 ? ring.pass(held) : held;
      sink.take(held, ring.before(step));
      held = next;
    }
  }

  /** The sum over ranks of their products of this rank's piece. */
  private static Tensor summedRound(Ring ring, Tensor whole, int dim, Product product) {
    long size = whole.size(dim) / ring.n();
    Tensor sum = product.of(Views.narrow(whole, dim, ring.before(1) * size, size));
    for (int step = 1; step < ring.n(); step++) {
      Tensor arriving = ring.pass(Casts.contiguous(sum));
      sum = product.of(Views.narrow(whole, dim, ring.before(step + 1) * size, size)).add(arriving);
    }
    return sum;
  }

  private static StridedTensor whole(Tensor piece, int dim, long last, int n) {
    long[] shape = piece.shape().clone();
    shape[dim] *= n;
    shape[shape.length - 1] = last;
    return Tensors.empty(piece.dtype(), piece.device(), shape);
  }

  private static Tensor at(Tensor whole, int dim, long size, int index) {
    return Views.narrow(whole, dim, index * size, size);
  }

  private static Tensor[] gathered(Tensor[] in, Attrs attrs) {
    Ring ring = attrs.get(0, Ring.class);
    int dim = attrs.intAt(1);
    StridedTensor out = whole(in[0], dim, in[1].size(0), ring.n());
    round(
        ring,
        in[0],
        (piece, i) -> {
          Tensor unused =
              InPlace.copy(at(out, dim, in[0].size(dim), i), MatMul.linear(piece, in[1], null));
        });
    return new Tensor[] {out};
  }

  private static @Nullable Tensor[] gatheredBackward(
      Backward.Context ctx, @Nullable Tensor[] gradients) {
    Tensor g = gradients[0];
    @Nullable Tensor[] out = new @Nullable Tensor[2];
    if (g == null) {
      return out;
    }
    Ring ring = ctx.attrs().get(0, Ring.class);
    int dim = ctx.attrs().intAt(1);
    if (ctx.needs(0)) {
      Tensor weight = ctx.input(1);
      out[0] = summedRound(ring, g, dim, piece -> MatMul.matmul(piece, weight));
    }
    if (ctx.needs(1)) {
      out[1] = weightGradient(ring, ctx.input(0), g, dim, true);
    }
    return out;
  }

  private static Tensor[] scattered(Tensor[] in, Attrs attrs) {
    Ring ring = attrs.get(0, Ring.class);
    return new Tensor[] {
      summedRound(ring, in[0], attrs.intAt(1), piece -> MatMul.linear(piece, in[1], null))
    };
  }

  private static @Nullable Tensor[] scatteredBackward(
      Backward.Context ctx, @Nullable Tensor[] gradients) {
    Tensor g = gradients[0];
    @Nullable Tensor[] out = new @Nullable Tensor[2];
    if (g == null) {
      return out;
    }
    Ring ring = ctx.attrs().get(0, Ring.class);
    int dim = ctx.attrs().intAt(1);
    if (ctx.needs(0)) {
      Tensor weight = ctx.input(1);
      StridedTensor dx = whole(g, dim, weight.size(1), ring.n());
      round(
          ring,
          g,
          (piece, i) -> {
            Tensor unused = InPlace.copy(at(dx, dim, g.size(dim), i), MatMul.matmul(piece, weight));
          });
      out[0] = dx;
    }
    if (ctx.needs(1)) {
      out[1] = weightGradient(ring, g, ctx.input(0), dim, false);
    }
    return out;
  }

  /**
   * Over all pieces, gradient^T input, where one of them goes round and the other is whole here.
   *
   * @param inputMoves whether the input is the one that goes round
   */
  private static Tensor weightGradient(
      Ring ring, Tensor moving, Tensor whole, int dim, boolean inputMoves) {
    Tensor[] sum = new Tensor[1];
    round(
        ring,
        moving,
        (piece, i) -> {
          Tensor here = at(whole, dim, piece.size(dim), i);
          Tensor part =
              inputMoves
                  ? MatMul.contractLeading(here, piece)
                  : MatMul.contractLeading(piece, here);
          sum[0] = sum[0] == null ? part : sum[0].add(part);
        });
    return sum[0];
  }
}
