package dev.weft.funcol;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Op;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The catalogue entries of the functional collectives. */
final class FuncolOps {
  private FuncolOps() {}

  static final Op ALL_REDUCE =
      Op.composite("_c10d_functional.all_reduce", FuncolOps::allReduce)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x ->
                          FunctionalCollectives.allReduce(x, ReduceOp.SUM, group(ctx.attrs(), 1))));

  static final Op ALL_GATHER =
      Op.composite("_c10d_functional.all_gather_into_tensor", FuncolOps::allGather)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x ->
                          FunctionalCollectives.reduceScatterTensor(
                              x, ReduceOp.SUM, ctx.attrs().intAt(0), group(ctx.attrs(), 1))));

  static final Op REDUCE_SCATTER =
      Op.composite("_c10d_functional.reduce_scatter_tensor", FuncolOps::reduceScatter)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x ->
                          FunctionalCollectives.allGatherTensor(
                              x, ctx.attrs().intAt(1), group(ctx.attrs(), 2))));

  static final Op ALL_TO_ALL =
      Op.composite("_c10d_functional.all_to_all_single", FuncolOps::allToAll)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x ->
                          FunctionalCollectives.allToAllSingle(
                              x,
                              ctx.attrs().longsAt(1),
                              ctx.attrs().longsAt(0),
                              group(ctx.attrs(), 2))));

  static final Op BROADCAST =
      Op.composite("_c10d_functional.broadcast", FuncolOps::broadcast)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x -> {
                        ProcessGroup group = group(ctx.attrs(), 1);
                        Tensor sum = FunctionalCollectives.allReduce(x, ReduceOp.SUM, group);
                        return group.rank() == ctx.attrs().intAt(0) ? sum : Creation.fullLike(x, 0);
                      }));

  static final Op PERMUTE =
      Op.composite("_c10d_functional.permute_tensor", FuncolOps::permute)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  one(
                      g[0],
                      x -> {
                        int[] to = ctx.attrs().intsAt(0);
                        int[] back = new int[to.length];
                        for (int r = 0; r < to.length; r++) {
                          back[to[r]] = r;
                        }
                        return FunctionalCollectives.permuteTensor(x, back, group(ctx.attrs(), 1));
                      }));

  private static @Nullable Tensor[] one(
      @Nullable Tensor gradient, java.util.function.UnaryOperator<Tensor> formula) {
    return new @Nullable Tensor[] {gradient == null ? null : formula.apply(gradient)};
  }

  private static ProcessGroup group(Attrs attrs, int i) {
    return attrs.get(i, ProcessGroup.class);
  }

  private static StridedTensor plain(Tensor t, String what) {
    if (t instanceof StridedTensor s) {
      return s;
    }
    throw new IllegalArgumentException(
        what + " takes plain tensors; got " + t.describe() + " (use toLocal or redistribute)");
  }

  private static Tensor[] allReduce(Tensor[] in, Attrs attrs) {
    StridedTensor out = Regions.copyOf(plain(in[0], "all_reduce"));
    Work work =
        group(attrs, 1).allReduce(out, attrs.get(0, ReduceOp.class), CollectiveOptions.ASYNC);
    return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
  }

  private static Tensor[] allGather(Tensor[] in, Attrs attrs) {
    StridedTensor local = Regions.contiguous(plain(in[0], "all_gather"));
    int dim = attrs.intAt(0);
    ProcessGroup group = group(attrs, 1);
    int n = group.size();
    long[] whole = local.shape().clone();
    whole[dim] *= n;
    StridedTensor out = Tensors.empty(local.dtype(), local.device(), whole);
    if (Blocks.isOuter(local.shape(), dim)) {
      StridedTensor flat = rows(out, n, local.shape());
      Work work = group.allGatherIntoTensor(flat, local, CollectiveOptions.ASYNC);
      return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
    }
    long[] stacked = local.shape().clone();
    stacked[0] *= n;
    StridedTensor blocks = Tensors.empty(local.dtype(), local.device(), stacked);
    Work work = group.allGatherIntoTensor(blocks, local, CollectiveOptions.ASYNC);
    return new Tensor[] {
      AsyncCollectiveTensor.of(out, work, () -> Blocks.unpack(blocks, out, dim, n), List.of(blocks))
    };
  }

  /** The same memory with n times the rows of a block along dimension 0. */
  private static StridedTensor rows(StridedTensor t, int n, long[] block) {
    long[] shape = block.clone();
    shape[0] *= n;
    return Regions.reshaped(t, shape);
  }

  private static Tensor[] reduceScatter(Tensor[] in, Attrs attrs) {
    StridedTensor whole = plain(in[0], "reduce_scatter");
    int dim = attrs.intAt(1);
    ProcessGroup group = group(attrs, 2);
    int n = group.size();
    long[] part = whole.shape().clone();
    part[dim] /= n;
    StridedTensor blocks;
    if (whole.isContiguous() && Blocks.isOuter(whole.shape(), dim)) {
      blocks = rows(whole, n, part);
    } else {
      long[] stacked = part.clone();
      stacked[0] *= n;
      blocks = Tensors.empty(whole.dtype(), whole.device(), stacked);
      Blocks.pack(whole, blocks, dim, n);
    }
    StridedTensor out = Tensors.empty(whole.dtype(), whole.device(), part);
    Work work =
        group.reduceScatterTensor(
            out, blocks, attrs.get(0, ReduceOp.class), CollectiveOptions.ASYNC);
    return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
  }

  private static Tensor[] allToAll(Tensor[] in, Attrs attrs) {
    StridedTensor rows = Regions.contiguous(plain(in[0], "all_to_all"));
    long[] outputSplits = attrs.longsAt(0);
    long[] shape = rows.shape().clone();
    shape[0] = 0;
    for (long s : outputSplits) {
      shape[0] += s;
    }
    StridedTensor out = Tensors.empty(rows.dtype(), rows.device(), shape);
    Work work =
        group(attrs, 2)
            .allToAllSingle(out, rows, outputSplits, attrs.longsAt(1), CollectiveOptions.ASYNC);
    return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
  }

  private static Tensor[] broadcast(Tensor[] in, Attrs attrs) {
    StridedTensor out = Regions.copyOf(plain(in[0], "broadcast"));
    Work work = group(attrs, 1).broadcast(out, attrs.intAt(0), CollectiveOptions.ASYNC);
    return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
  }

  private static Tensor[] permute(Tensor[] in, Attrs attrs) {
    StridedTensor mine = Regions.contiguous(plain(in[0], "permute_tensor"));
    int[] to = attrs.intsAt(0);
    ProcessGroup group = group(attrs, 1);
    int me = group.rank();
    long numel = mine.numel();
    long[] outputSplits = new long[to.length];
    long[] inputSplits = new long[to.length];
    for (int r = 0; r < to.length; r++) {
      if (to[r] == me) {
        outputSplits[r] = numel;
      }
    }
    inputSplits[to[me]] = numel;
    StridedTensor out = Tensors.empty(mine.dtype(), mine.device(), mine.shape());
    Work work =
        group.allToAllSingle(
            flat(out), flat(mine), outputSplits, inputSplits, CollectiveOptions.ASYNC);
    return new Tensor[] {AsyncCollectiveTensor.of(out, work, null, List.of())};
  }

  private static StridedTensor flat(StridedTensor t) {
    return Regions.reshaped(t, t.numel());
  }
}
