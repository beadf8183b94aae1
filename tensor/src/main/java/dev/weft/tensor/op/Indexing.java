package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cpu.IndexKernels;
import dev.weft.tensor.cuda.CudaEmbedding;
import dev.weft.tensor.cuda.CudaIndexing;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Reads at computed positions, and triangles of matrices. Indices are int64 or int32 and not
 * negative; one out of range is an IndexOutOfBoundsException, on a CUDA device thrown by a later
 * call or where the host waits, since kernels run behind the host. Any thread.
 */
public final class Indexing {
  private Indexing() {}

  private static final Op EMBEDDING_BACKWARD =
      Op.function(
              "embedding_backward",
              (in, a) -> TensorSpec.one(new long[] {a.longAt(0), in[0].size(-1)}, in[0].dtype()),
              (in, out, a) -> IndexKernels.embeddingBackward(in[0], in[1], out[0], a.longAt(1)))
          .cuda((in, out, a) -> CudaEmbedding.backward(in[0], in[1], out[0], a.longAt(1)))
          .notDifferentiable();

  private static final Op EMBEDDING =
      Op.function(
              "embedding",
              (in, a) -> {
                Check.ndim("embedding", "weight", in[0], 2);
                Check.integral("embedding", "indices", in[1]);
                long[] s = Arrays.copyOf(in[1].shape(), in[1].ndim() + 1);
                s[s.length - 1] = in[0].size(1);
                return TensorSpec.one(s, in[0].dtype());
              },
              (in, out, a) -> IndexKernels.embedding(in[0], in[1], out[0]))
          .cuda((in, out, a) -> CudaEmbedding.forward(in[0], in[1], out[0]))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          EMBEDDING_BACKWARD,
                          Attrs.of(
                              ctx.inputShape(0)[0],
                              ctx.attrs().isNull(0) ? -1L : ctx.attrs().longAt(0)),
                          g,
                          ctx.input(1))));

  private static final Op INDEX_SELECT_BACKWARD =
      Op.function(
              "index_select_backward",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[0].dtype()),
              (in, out, a) -> IndexKernels.indexSelectBackward(in[0], in[1], out[0], a.intAt(1)))
          .cuda((in, out, a) -> CudaIndexing.indexSelectBackward(in[0], in[1], out[0], a.intAt(1)))
          .notDifferentiable();

  private static final Op INDEX_SELECT =
      Op.function(
              "index_select",
              (in, a) -> {
                Check.integral("index_select", "index", in[1]);
                Check.ndim("index_select", "index", in[1], 1);
                long[] s = in[0].shape().clone();
                s[a.intAt(0)] = in[1].size(0);
                return TensorSpec.one(s, in[0].dtype());
              },
              (in, out, a) -> IndexKernels.indexSelect(in[0], in[1], out[0], a.intAt(0)))
          .cuda((in, out, a) -> CudaIndexing.indexSelect(in[0], in[1], out[0], a.intAt(0)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Dispatcher.call(
                          INDEX_SELECT_BACKWARD,
                          Attrs.of(ctx.inputShape(0), ctx.attrs().get(0)),
                          g,
                          ctx.input(1))));

  private static void checkGather(String op, Tensor x, Tensor index, int dim) {
    Check.integral(op, "index", index);
    boolean fits = index.ndim() == x.ndim();
    for (int d = 0; fits && d < x.ndim(); d++) {
      fits = d == dim || index.shape()[d] <= x.shape()[d];
    }
    if (!fits) {
      throw Check.bad(
          op,
          "index has shape "
              + Arrays.toString(index.shape())
              + "; expected as many dimensions as "
              + Arrays.toString(x.shape())
              + " and no larger sizes but along dim "
              + dim);
    }
  }

  private static final Op GATHER_BACKWARD =
      Op.function(
              "gather_backward",
              (in, a) -> TensorSpec.one(a.longsAt(0), in[0].dtype()),
              (in, out, a) -> {
                dev.weft.tensor.cpu.FillKernels.fill(out[0], 0);
                IndexKernels.scatterAdd("gather_backward", out[0], in[1], in[0], a.intAt(1));
              })
          .cuda((in, out, a) -> CudaIndexing.gatherBackward(in[0], in[1], out[0], a.intAt(1)))
          .notDifferentiable();

  private static final Op GATHER =
      Op.function(
              "gather",
              (in, a) -> {
                checkGather("gather", in[0], in[1], a.intAt(0));
                return TensorSpec.one(in[1].shape(), in[0].dtype());
              },
              (in, out, a) -> IndexKernels.gather(in[0], in[1], out[0], a.intAt(0)))
          .cuda((in, out, a) -> CudaIndexing.gather(in[0], in[1], out[0], a.intAt(0)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      gatherBackward(g, ctx.input(1), ctx.inputShape(0), ctx.attrs().intAt(0))));

  private static final Op SCATTER_ADD =
      Op.function(
              "scatter_add",
              (in, a) -> {
                Check.sameDType("scatter_add", in[0], in[2]);
                checkGather("scatter_add", in[0], in[1], a.intAt(0));
                Check.sameShape("scatter_add", "src", in[2], in[1].shape());
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> {
                CopyKernels.copy(in[0], out[0]);
                IndexKernels.scatterAdd("scatter_add", out[0], in[1], in[2], a.intAt(0));
              })
          .cuda((in, out, a) -> CudaIndexing.scatterAdd(in[0], in[1], in[2], out[0], a.intAt(0)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? g : null,
                        null,
                        ctx.needs(2) ? gather(g, ctx.attrs().intAt(0), ctx.input(1)) : null
                      }));

  private static Op triangle(String name, boolean lower) {
    return Op.function(
            name,
            (in, a) -> {
              if (in[0].ndim() < 2) {
                throw Check.bad(
                    name,
                    "input has shape "
                        + Arrays.toString(in[0].shape())
                        + "; expected at least 2 dimensions");
              }
              return TensorSpec.one(in[0].shape(), in[0].dtype());
            },
            (in, out, a) -> IndexKernels.triangle(in[0], out[0], a.longAt(0), lower))
        .cuda((in, out, a) -> CudaIndexing.triangle(in[0], out[0], a.longAt(0), lower));
  }

  private static final Op TRIL =
      triangle("tril", true)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> tril(g, ctx.attrs().longAt(0))));

  private static final Op TRIU =
      triangle("triu", false)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> triu(g, ctx.attrs().longAt(0))));

  static Tensor gatherBackward(Tensor g, Tensor index, long[] shape, int dim) {
    return Dispatcher.call(GATHER_BACKWARD, Attrs.of(shape, dim), g, index);
  }

  /** Rows of a table [rows, width] at indices of any shape: [..., width]. */
  public static Tensor embedding(Tensor weight, Tensor indices) {
    return Dispatcher.call(EMBEDDING, Attrs.NONE, weight, indices);
  }

  /** The same; the row {@code paddingIndex} gets no gradient. */
  public static Tensor embedding(Tensor weight, Tensor indices, long paddingIndex) {
    return Dispatcher.call(EMBEDDING, Attrs.of(paddingIndex), weight, indices);
  }

  /** Slices of a dimension at a vector of positions. */
  public static Tensor indexSelect(Tensor x, int dim, Tensor index) {
    if (x.ndim() == 0) {
      throw Check.bad("index_select", "input has no dimensions");
    }
    return Dispatcher.call(
        INDEX_SELECT, Attrs.of(Check.dim("index_select", dim, x.ndim())), x, index);
  }

  /** Slices of the first dimension at positions of any shape: [positions..., rest...]. */
  public static Tensor index(Tensor x, Tensor positions) {
    Tensor picked = indexSelect(x, 0, Views.reshape(positions, -1));
    long[] shape = Arrays.copyOf(positions.shape(), positions.ndim() + x.ndim() - 1);
    System.arraycopy(x.shape(), 1, shape, positions.ndim(), x.ndim() - 1);
    return Views.reshape(picked, shape);
  }

  /** out[p] = x[p with its coordinate along dim replaced by index[p]]. */
  public static Tensor gather(Tensor x, int dim, Tensor index) {
    return Dispatcher.call(GATHER, Attrs.of(Check.dim("gather", dim, x.ndim())), x, index);
  }

  /** x plus source[p] at p with its coordinate along dim replaced by index[p]. */
  public static Tensor scatterAdd(Tensor x, int dim, Tensor index, Tensor source) {
    return Dispatcher.call(
        SCATTER_ADD, Attrs.of(Check.dim("scatter_add", dim, x.ndim())), x, index, source);
  }

  /** Zeros above the diagonal (0 is the main one) of each matrix. */
  public static Tensor tril(Tensor x, long diagonal) {
    return Dispatcher.call(TRIL, Attrs.of(diagonal), x);
  }

  /** Zeros below the diagonal (0 is the main one) of each matrix. */
  public static Tensor triu(Tensor x, long diagonal) {
    return Dispatcher.call(TRIU, Attrs.of(diagonal), x);
  }

  /** int64 ones at the indices along a new last dimension of a size, zeros elsewhere. */
  public static Tensor oneHot(Tensor indices, long classes) {
    Check.integral("one_hot", "indices", indices);
    Tensor positions = Creation.arange(0, classes, DType.INT64);
    return Casts.to(Compare.eq(Views.unsqueeze(indices, indices.ndim()), positions), DType.INT64);
  }
}
