package dev.weft.funcol;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Backward;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Views;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Several tensors of one dtype in one collective: they travel side by side in one buffer, of which
 * the results are parts where the layout allows.
 */
final class Coalesced {
  private Coalesced() {}

  /** Attributes: reduction, group. */
  static final Op ALL_REDUCE =
      Op.composite("_c10d_functional.all_reduce_coalesced", Coalesced::allReduce)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  Dispatcher.callAll(
                      allReduceOp(),
                      Attrs.of(ReduceOp.SUM, group(ctx.attrs(), 1)),
                      filled(ctx, g, 1)));

  /** Attributes: group. Along dimension 0. */
  static final Op ALL_GATHER =
      Op.composite("_c10d_functional.all_gather_into_tensor_coalesced", Coalesced::allGather)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) -> {
                ProcessGroup group = group(ctx.attrs(), 0);
                return Dispatcher.callAll(
                    reduceScatterOp(),
                    Attrs.of(ReduceOp.SUM, new int[ctx.inputCount()], group),
                    filled(ctx, g, group.size()));
              });

  /** Attributes: reduction, dimensions, group. */
  static final Op REDUCE_SCATTER =
      Op.composite("_c10d_functional.reduce_scatter_tensor_coalesced", Coalesced::reduceScatter)
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) -> {
                ProcessGroup group = group(ctx.attrs(), 2);
                int[] dims = ctx.attrs().intsAt(1);
                Tensor[] moved = new Tensor[g.length];
                for (int i = 0; i < g.length; i++) {
                  Tensor one = g[i];
                  moved[i] =
                      Views.movedim(
                          one != null ? one : zeros(ctx, i, dims[i], 1, group.size()), dims[i], 0);
                }
                Tensor[] gathered = Dispatcher.callAll(allGatherOp(), Attrs.of(group), moved);
                for (int i = 0; i < gathered.length; i++) {
                  gathered[i] = Views.movedim(gathered[i], 0, dims[i]);
                }
                return gathered;
              });

  private static Op allReduceOp() {
    return ALL_REDUCE;
  }

  private static Op allGatherOp() {
    return ALL_GATHER;
  }

  private static Op reduceScatterOp() {
    return REDUCE_SCATTER;
  }

  /** The gradients, zeros where nothing flowed back; dimension 0 is {@code times} the input's. */
  private static Tensor[] filled(Backward.Context ctx, @Nullable Tensor[] g, int times) {
    Tensor[] out = new Tensor[g.length];
    for (int i = 0; i < g.length; i++) {
      Tensor one = g[i];
      out[i] = one != null ? one : zeros(ctx, i, 0, times, 1);
    }
    return out;
  }

  private static Tensor zeros(Backward.Context ctx, int i, int dim, int times, int parts) {
    long[] shape = ctx.inputShape(i).clone();
    if (shape.length > 0) {
      shape[dim] = shape[dim] * times / parts;
    }
    return Creation.zeros(ctx.inputDType(i), shape);
  }

  private static ProcessGroup group(Attrs attrs, int i) {
    return attrs.get(i, ProcessGroup.class);
  }

  /** True where one buffer can hold all. */
  static boolean fits(List<Tensor> tensors) {
    return tensors.size() > 1
        && tensors.stream()
            .allMatch(
                t ->
                    t instanceof StridedTensor
                        && t.dtype() == tensors.get(0).dtype()
                        && t.device().equals(tensors.get(0).device()));
  }

  private static StridedTensor buffer(Tensor[] in, long numel) {
    return Tensors.empty(in[0].dtype(), in[0].device(), numel);
  }

  private static StridedTensor part(StridedTensor flat, long at, long[] shape) {
    long n = Shapes.numel(shape);
    return flat.withLayout(shape, Shapes.contiguousStrides(shape), n == 0 ? 0 : flat.offset() + at);
  }

  private static Tensor[] allReduce(Tensor[] in, Attrs attrs) {
    long total = 0;
    for (Tensor t : in) {
      total += t.numel();
    }
    StridedTensor flat = buffer(in, total);
    Tensor[] out = new Tensor[in.length];
    long at = 0;
    for (int i = 0; i < in.length; i++) {
      StridedTensor piece = part(flat, at, in[i].shape());
      Regions.copy((StridedTensor) in[i], piece);
      out[i] = piece;
      at += in[i].numel();
    }
    Work work =
        group(attrs, 1).allReduce(flat, attrs.get(0, ReduceOp.class), CollectiveOptions.ASYNC);
    return pending(flat, work, out);
  }

  private static Tensor[] pending(StridedTensor flat, Work work, Tensor[] out) {
    AsyncCollectiveTensor gate = AsyncCollectiveTensor.of(flat, work, null, List.of());
    for (int i = 0; i < out.length; i++) {
      out[i] = gate.part((StridedTensor) out[i]);
    }
    return out;
  }

  private static Tensor[] allGather(Tensor[] in, Attrs attrs) {
    ProcessGroup group = group(attrs, 0);
    int n = group.size();
    long total = 0;
    for (Tensor t : in) {
      total += t.numel();
    }
    long width = total;
    StridedTensor mine = buffer(in, width);
    StridedTensor all = buffer(in, width * n);
    StridedTensor results = buffer(in, width * n);
    Tensor[] out = new Tensor[in.length];
    long at = 0;
    for (int i = 0; i < in.length; i++) {
      Regions.copy((StridedTensor) in[i], part(mine, at, in[i].shape()));
      long[] shape = in[i].shape().clone();
      shape[0] *= n;
      out[i] = part(results, at * n, shape);
      at += in[i].numel();
    }
    Work work = group.allGatherIntoTensor(all, mine, CollectiveOptions.ASYNC);
    Runnable relayout =
        () -> {
          long from = 0;
          for (Tensor t : in) {
            for (int r = 0; r < n; r++) {
              Regions.copy(
                  part(all, r * width + from, t.shape()),
                  part(results, from * n + r * t.numel(), t.shape()));
            }
            from += t.numel();
          }
        };
    AsyncCollectiveTensor gate = AsyncCollectiveTensor.of(results, work, relayout, List.of(all));
    for (int i = 0; i < out.length; i++) {
      out[i] = gate.part((StridedTensor) out[i]);
    }
    return out;
  }

  private static Tensor[] reduceScatter(Tensor[] in, Attrs attrs) {
    int[] dims = attrs.intsAt(1);
    ProcessGroup group = group(attrs, 2);
    int n = group.size();
    long total = 0;
    for (Tensor t : in) {
      total += t.numel() / n;
    }
    StridedTensor blocks = buffer(in, total * n);
    StridedTensor mine = buffer(in, total);
    Tensor[] out = new Tensor[in.length];
    long at = 0;
    for (int i = 0; i < in.length; i++) {
      long[] shape = in[i].shape().clone();
      shape[dims[i]] /= n;
      for (int r = 0; r < n; r++) {
        Regions.copy(
            Regions.narrow((StridedTensor) in[i], dims[i], r * shape[dims[i]], shape[dims[i]]),
            part(blocks, r * total + at, shape));
      }
      out[i] = part(mine, at, shape);
      at += in[i].numel() / n;
    }
    Work work =
        group.reduceScatterTensor(
            mine, blocks, attrs.get(0, ReduceOp.class), CollectiveOptions.ASYNC);
    return pending(mine, work, out);
  }
}
