package dev.weft.dtensor.tp;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Backward;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Views;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The operator behind {@link ContextParallel}, on plain parts. Forward keeps for each query the
 * logarithm of its sum of exponentials and merges the results of one block of keys after the other;
 * backward recomputes the probabilities from it (Dao et al., arXiv:2205.14135) and sends the
 * gradients of keys and values round along with them. Sums are kept in float32 at least.
 */
final class RingAttention {
  private RingAttention() {}

  /**
   * Consecutive positions.
   *
   * @param start in the sequence
   * @param local in the rank's part
   */
  record Piece(long start, long local, long length) {
    Tensor of(Tensor t) {
      return Views.narrow(t, -2, local, length);
    }
  }

  /** Inputs query, key, value; attributes ring, pieces of queries and of keys, causal. */
  static final Op OP =
      Op.composite("context_parallel.ring_attention", RingAttention::forward)
          .gradient(Op.Saves.BOTH, RingAttention::backward);

  @SuppressWarnings("unchecked") // only ContextParallel makes these attributes
  private static List<List<Piece>> pieces(Attrs attrs, int i) {
    return (List<List<Piece>>) attrs.get(i, List.class);
  }

  private static DType wide(Tensor t) {
    return t.dtype() == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
  }

  private static double scale(Tensor query) {
    return 1 / Math.sqrt((double) query.size(-1));
  }

  /** What goes round: keys and values, padded to the longest part. */
  private static StridedTensor packed(Tensor key, Tensor value, List<List<Piece>> pieces) {
    long longest = pieces.stream().mapToLong(RingAttention::length).max().orElse(0);
    long[] shape = new long[key.ndim() + 1];
    System.arraycopy(key.shape(), 0, shape, 1, key.ndim());
    shape[0] = 2;
    shape[shape.length - 2] = longest;
    StridedTensor both = Tensors.empty(key.dtype(), key.device(), shape);
    if (longest != key.size(-2)) {
      Tensor unused = InPlace.zero(both);
    }
    int dim = both.ndim() - 2;
    StridedTensor kept = Regions.narrow(both, dim, 0, key.size(-2));
    Tensor unused = InPlace.copy(Views.select(kept, 0, 0), key);
    unused = InPlace.copy(Views.select(kept, 0, 1), value);
    return both;
  }

  private static long length(List<Piece> pieces) {
    return pieces.stream().mapToLong(Piece::length).sum();
  }

  private static boolean sees(Piece query, Piece key, boolean causal) {
    return !causal || key.start <= query.start;
  }

  /** Scores of a block; where it lies on the diagonal, later keys are not seen. */
  private static Tensor scores(Tensor q, Tensor k, double scale, boolean diagonal) {
    Tensor s = Pointwise.mul(MatMul.matmul(q, Views.transpose(k, -2, -1)), scale);
    return diagonal
        ? Compare.maskedFill(
            s, laterKeys(s.device(), s.size(-2), s.size(-1)), Double.NEGATIVE_INFINITY)
        : s;
  }

  private static Tensor laterKeys(Device device, long queries, long keys) {
    return Indexing.triu(Creation.full(1, DType.BOOL, device, queries, keys), 1);
  }

  /** What is known of a piece of queries so far. */
  private static final class Merged {
    private @Nullable Tensor out;
    private @Nullable Tensor logSum;

    void add(Tensor scores, Tensor values) {
      Tensor own = Reductions.logSumExp(scores, new int[] {-1}, true);
      Tensor before = logSum;
      Tensor outBefore = out;
      Tensor now = before == null ? own : logAddExp(before, own);
      Tensor part = MatMul.matmul(Unary.exp(scores.sub(now)), values);
      out =
          before == null || outBefore == null
              ? part
              : part.add(outBefore.mul(Unary.exp(before.sub(now))));
      logSum = now;
    }

    private static Tensor logAddExp(Tensor a, Tensor b) {
      Tensor most = Pointwise.maximum(a, b);
      return most.add(Unary.log(Unary.exp(a.sub(most)).add(Unary.exp(b.sub(most)))));
    }
  }

  private static Tensor[] forward(Tensor[] in, Attrs attrs) {
    Ring ring = attrs.get(0, Ring.class);
    List<Piece> mine = pieces(attrs, 1).get(ring.me());
    List<List<Piece>> keys = pieces(attrs, 2);
    boolean causal = attrs.boolAt(3);
    DType wide = wide(in[0]);
    double scale = scale(in[0]);
    Tensor query = Casts.to(in[0], wide);
    Merged[] merged = new Merged[mine.size()];
    for (int i = 0; i < merged.length; i++) {
      merged[i] = new Merged();
    }
    Tensor held = packed(in[1], in[2], keys);
    for (int step = 0; step < ring.n(); step++) {
      // The next block is on its way while this one is worked on.
      Tensor next = step < ring.n() - 1 ? ring.pass(held) : held;
      Tensor key = Casts.to(Views.select(held, 0, 0), wide);
      Tensor value = Casts.to(Views.select(held, 0, 1), wide);
      for (int i = 0; i < merged.length; i++) {
        Piece q = mine.get(i);
        for (Piece k : keys.get(ring.before(step))) {
          if (sees(q, k, causal)) {
            boolean diagonal = causal && k.start == q.start;
            merged[i].add(scores(q.of(query), k.of(key), scale, diagonal), k.of(value));
          }
        }
      }
      held = next;
    }
    return result(in[0], mine, merged, wide);
  }

  private static Tensor[] result(Tensor query, List<Piece> mine, Merged[] merged, DType wide) {
    StridedTensor out = Tensors.empty(query.dtype(), query.device(), query.shape());
    long[] column = query.shape().clone();
    column[column.length - 1] = 1;
    StridedTensor logSum = Tensors.empty(wide, query.device(), column);
    for (int i = 0; i < merged.length; i++) {
      Tensor part = merged[i].out;
      Tensor sum = merged[i].logSum;
      Piece piece = mine.get(i);
      Tensor unused;
      if (part == null || sum == null) { // there are no keys
        unused = InPlace.fill(piece.of(out), Double.NaN);
        unused = InPlace.fill(piece.of(logSum), Double.NEGATIVE_INFINITY);
      } else {
        unused = InPlace.copy(piece.of(out), part);
        unused = InPlace.copy(piece.of(logSum), sum);
      }
    }
    return new Tensor[] {out, logSum};
  }

  private static @Nullable Tensor[] backward(Backward.Context ctx, @Nullable Tensor[] g) {
    Tensor gradient = g[0];
    if (gradient == null) {
      return new @Nullable Tensor[3];
    }
    Attrs attrs = ctx.attrs();
    Ring ring = attrs.get(0, Ring.class);
    List<Piece> mine = pieces(attrs, 1).get(ring.me());
    List<List<Piece>> keys = pieces(attrs, 2);
    boolean causal = attrs.boolAt(3);
    DType wide = wide(ctx.input(0));
    double scale = scale(ctx.input(0));
    Tensor query = Casts.to(ctx.input(0), wide);
    Tensor dOut = Casts.to(gradient, wide);
    Tensor logSum = ctx.output(1);
    Tensor weighted = Reductions.sum(dOut.mul(Casts.to(ctx.output(0), wide)), new int[] {-1}, true);
    Tensor dQuery = Creation.full(0, wide, query.device(), query.shape());
    Tensor held = packed(ctx.input(1), ctx.input(2), keys);
    Tensor dHeld = Creation.full(0, wide, held.device(), held.shape());
    for (int step = 0; step < ring.n(); step++) {
      Tensor next = step < ring.n() - 1 ? ring.pass(held) : held;
      Tensor key = Casts.to(Views.select(held, 0, 0), wide);
      Tensor value = Casts.to(Views.select(held, 0, 1), wide);
      Tensor dKey = Views.select(dHeld, 0, 0);
      Tensor dValue = Views.select(dHeld, 0, 1);
      for (Piece q : mine) {
        for (Piece k : keys.get(ring.before(step))) {
          if (sees(q, k, causal)) {
            boolean diagonal = causal && k.start == q.start;
            Tensor qs = q.of(query);
            Tensor p = Unary.exp(scores(qs, k.of(key), scale, diagonal).sub(q.of(logSum)));
            Tensor dq = q.of(dOut);
            Tensor unused =
                InPlace.add(k.of(dValue), MatMul.matmul(Views.transpose(p, -2, -1), dq));
            Tensor dp = MatMul.matmul(dq, Views.transpose(k.of(value), -2, -1));
            Tensor ds = p.mul(dp.sub(q.of(weighted))).mul(scale);
            unused = InPlace.add(q.of(dQuery), MatMul.matmul(ds, k.of(key)));
            unused = InPlace.add(k.of(dKey), MatMul.matmul(Views.transpose(ds, -2, -1), qs));
          }
        }
      }
      held = next;
      // After as many steps as there are ranks they are back with their owner.
      dHeld = ring.n() == 1 ? dHeld : Casts.copy(ring.pass(dHeld));
    }
    Tensor own = Views.narrow(dHeld, -2, 0, ctx.inputShape(1)[ctx.inputShape(1).length - 2]);
    return new @Nullable Tensor[] {
      Casts.to(dQuery, ctx.inputDType(0)),
      Casts.to(Casts.copy(Views.select(own, 0, 0)), ctx.inputDType(1)),
      Casts.to(Casts.copy(Views.select(own, 0, 1)), ctx.inputDType(2))
    };
  }
}
