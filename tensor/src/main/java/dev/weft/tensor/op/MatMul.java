package dev.weft.tensor.op;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.autograd.Backward;
import dev.weft.tensor.cpu.MatMulKernels;
import dev.weft.tensor.cuda.CudaMatMul;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Matrix products. Dtypes must be equal; float16 and bfloat16 are summed in float32; an inner
 * dimension of size 0 gives zeros. Any thread.
 */
public final class MatMul {
  private MatMul() {}

  private static void factors(String op, Tensor... in) {
    Check.sameDType(op, in);
    Check.numbers(op, "input", in[0]);
  }

  private static IllegalArgumentException mismatch(String op, Tensor... in) {
    StringBuilder shapes = new StringBuilder();
    for (Tensor t : in) {
      shapes.append(shapes.isEmpty() ? "" : " and ").append(Arrays.toString(t.shape()));
    }
    return Check.bad(op, "shapes " + shapes + " cannot be multiplied");
  }

  private static final Op MM =
      Op.function(
              "mm",
              (in, a) -> {
                factors("mm", in[0], in[1]);
                Check.ndim("mm", "input", in[0], 2);
                Check.ndim("mm", "mat2", in[1], 2);
                if (in[0].size(1) != in[1].size(0)) {
                  throw mismatch("mm", in);
                }
                return TensorSpec.one(new long[] {in[0].size(0), in[1].size(1)}, in[0].dtype());
              },
              (in, out, a) -> MatMulKernels.matmul(in[0], in[1], out[0], 1, 0))
          .cuda((in, out, a) -> CudaMatMul.matmul(in[0], in[1], out[0], 1, 0))
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> products(ctx, g)));

  private static final Op BMM =
      Op.function(
              "bmm",
              (in, a) -> {
                factors("bmm", in[0], in[1]);
                Check.ndim("bmm", "input", in[0], 3);
                Check.ndim("bmm", "mat2", in[1], 3);
                if (in[0].size(2) != in[1].size(1) || in[0].size(0) != in[1].size(0)) {
                  throw mismatch("bmm", in);
                }
                return TensorSpec.one(
                    new long[] {in[0].size(0), in[0].size(1), in[1].size(2)}, in[0].dtype());
              },
              (in, out, a) -> MatMulKernels.matmul(in[0], in[1], out[0], 1, 0))
          .cuda((in, out, a) -> CudaMatMul.matmul(in[0], in[1], out[0], 1, 0))
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> products(ctx, g)));

  private static @Nullable Tensor[] products(Backward.Context ctx, Tensor g) {
    Op op = g.ndim() == 2 ? MM : BMM;
    return new @Nullable Tensor[] {
      ctx.needs(0)
          ? Dispatcher.call(op, Attrs.NONE, g, Views.transpose(ctx.input(1), -2, -1))
          : null,
      ctx.needs(1)
          ? Dispatcher.call(op, Attrs.NONE, Views.transpose(ctx.input(0), -2, -1), g)
          : null
    };
  }

  private static final Op MATMUL =
      Op.function(
              "matmul",
              (in, a) -> TensorSpec.one(matmulShape(in), in[0].dtype()),
              (in, out, a) ->
                  MatMulKernels.matmul(left(in[0]), right(in[1]), matrices(in, out[0]), 1, 0))
          .cuda(
              (in, out, a) ->
                  CudaMatMul.matmul(left(in[0]), right(in[1]), matrices(in, out[0]), 1, 0))
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> matmulGradient(ctx, g)));

  private static StridedTensor left(StridedTensor x) {
    return x.ndim() == 1 ? row(x) : x;
  }

  private static StridedTensor right(StridedTensor y) {
    return y.ndim() == 1 ? column(y) : y;
  }

  private static StridedTensor matrices(StridedTensor[] in, StridedTensor out) {
    return full(out, in[0].ndim() == 1, in[1].ndim() == 1);
  }

  private static StridedTensor row(StridedTensor v) {
    return v.withLayout(
        new long[] {1, v.shape()[0]}, new long[] {v.shape()[0], v.strides()[0]}, v.offset());
  }

  private static StridedTensor column(StridedTensor v) {
    return v.withLayout(new long[] {v.shape()[0], 1}, new long[] {v.strides()[0], 1}, v.offset());
  }

  /** The contiguous result with the dimensions of size 1 that vectors leave out. */
  private static StridedTensor full(StridedTensor out, boolean row, boolean column) {
    long[] shape = out.shape();
    if (column) {
      shape = Arrays.copyOf(shape, shape.length + 1);
      shape[shape.length - 1] = 1;
    }
    if (row) {
      long[] s = new long[shape.length + 1];
      System.arraycopy(shape, 0, s, 0, shape.length - 1);
      s[s.length - 2] = 1;
      s[s.length - 1] = shape[shape.length - 1];
      shape = s;
    }
    return shape == out.shape()
        ? out
        : out.withLayout(shape, dev.weft.tensor.Shapes.contiguousStrides(shape), out.offset());
  }

  private static long[] matmulShape(Tensor[] in) {
    factors("matmul", in[0], in[1]);
    long[] a = in[0].shape();
    long[] b = in[1].shape();
    if (a.length == 0 || b.length == 0) {
      throw Check.bad("matmul", "an input has no dimensions; expected at least 1, use mul");
    }
    long inner = b.length == 1 ? b[0] : b[b.length - 2];
    if (a[a.length - 1] != inner) {
      throw mismatch("matmul", in);
    }
    long[] batchA = a.length > 2 ? Arrays.copyOf(a, a.length - 2) : new long[0];
    long[] batchB = b.length > 2 ? Arrays.copyOf(b, b.length - 2) : new long[0];
    long[] batch;
    try {
      batch = dev.weft.tensor.Shapes.broadcast(batchA, batchB);
    } catch (IllegalArgumentException e) {
      throw mismatch("matmul", in);
    }
    long[] out =
        Arrays.copyOf(batch, batch.length + (a.length > 1 ? 1 : 0) + (b.length > 1 ? 1 : 0));
    int n = batch.length;
    if (a.length > 1) {
      out[n++] = a[a.length - 2];
    }
    if (b.length > 1) {
      out[n] = b[b.length - 1];
    }
    return out;
  }

  private static @Nullable Tensor[] matmulGradient(Backward.Context ctx, Tensor g) {
    Tensor a = ctx.input(0);
    Tensor b = ctx.input(1);
    boolean vectorA = a.ndim() == 1;
    boolean vectorB = b.ndim() == 1;
    @Nullable Tensor ga = null;
    @Nullable Tensor gb = null;
    if (!vectorA && b.ndim() == 2) {
      // Any number of rows times one matrix.
      ga = ctx.needs(0) ? matmul(g, Views.transpose(b, 0, 1)) : null;
      gb = ctx.needs(1) ? contractLeading(a, g) : null;
      return new @Nullable Tensor[] {ga, gb};
    }
    Tensor x = vectorA ? Views.unsqueeze(a, 0) : a;
    Tensor y = vectorB ? Views.unsqueeze(b, 1) : b;
    Tensor h = vectorB ? Views.unsqueeze(g, g.ndim()) : g;
    h = vectorA ? Views.unsqueeze(h, h.ndim() - 1) : h;
    if (ctx.needs(0)) {
      Tensor full = matmul(h, Views.transpose(y, -2, -1));
      ga = Reductions.sumToSize(full, x.shape());
      ga = vectorA ? Views.squeeze(ga, 0) : ga;
    }
    if (ctx.needs(1)) {
      Tensor full = matmul(Views.transpose(x, -2, -1), h);
      gb = Reductions.sumToSize(full, y.shape());
      gb = vectorB ? Views.squeeze(gb, 1) : gb;
    }
    return new @Nullable Tensor[] {ga, gb};
  }

  private static final Op CONTRACT_LEADING =
      Op.function(
              "contract_leading",
              (in, a) -> {
                factors("contract_leading", in[0], in[1]);
                long[] s = in[0].shape();
                long[] t = in[1].shape();
                if (s.length < 1
                    || s.length != t.length
                    || !Arrays.equals(s, 0, s.length - 1, t, 0, t.length - 1)) {
                  throw mismatch("contract_leading", in);
                }
                return TensorSpec.one(new long[] {s[s.length - 1], t[t.length - 1]}, in[0].dtype());
              },
              (in, out, a) -> MatMulKernels.contractLeading(in[0], in[1], out[0]))
          .cuda((in, out, a) -> CudaMatMul.contractLeading(in[0], in[1], out[0]))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? matmul(ctx.input(1), Views.transpose(g, 0, 1)) : null,
                        ctx.needs(1) ? matmul(ctx.input(0), g) : null
                      }));

  private static final Op LINEAR =
      Op.function(
              "linear",
              (in, a) -> {
                factors("linear", in);
                Check.ndim("linear", "weight", in[1], 2);
                long[] s = in[0].shape();
                if (s.length < 1 || s[s.length - 1] != in[1].size(1)) {
                  throw Check.bad(
                      "linear",
                      "input has shape "
                          + Arrays.toString(s)
                          + "; expected the last dimension "
                          + in[1].size(1)
                          + " of weight "
                          + Arrays.toString(in[1].shape()));
                }
                if (in.length > 2) {
                  Check.sameShape("linear", "bias", in[2], new long[] {in[1].size(0)});
                }
                long[] shape = s.clone();
                shape[shape.length - 1] = in[1].size(0);
                return TensorSpec.one(shape, in[0].dtype());
              },
              (in, out, a) -> linearKernel(in, out[0]))
          .cuda(
              (in, out, a) ->
                  CudaMatMul.linear(in, left(in[0]), full(out[0], in[0].ndim() == 1, false)))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    @Nullable Tensor[] result = new @Nullable Tensor[ctx.inputCount()];
                    if (ctx.needs(0)) {
                      result[0] = matmul(g, ctx.input(1));
                    }
                    if (ctx.needs(1)) {
                      Tensor h = g.ndim() == 1 ? Views.unsqueeze(g, 0) : g;
                      Tensor x = ctx.input(0);
                      result[1] = contractLeading(h, x.ndim() == 1 ? Views.unsqueeze(x, 0) : x);
                    }
                    if (result.length > 2 && ctx.needs(2)) {
                      result[2] = Reductions.sumToSize(g, ctx.inputShape(2));
                    }
                    return result;
                  }));

  private static void linearKernel(StridedTensor[] in, StridedTensor out) {
    StridedTensor x = left(in[0]);
    StridedTensor w = in[1];
    StridedTensor wt =
        w.withLayout(
            new long[] {w.shape()[1], w.shape()[0]},
            new long[] {w.strides()[1], w.strides()[0]},
            w.offset());
    boolean bias = in.length > 2;
    if (bias) {
      dev.weft.tensor.cpu.CopyKernels.copy(in[2], out);
    }
    MatMulKernels.matmul(x, wt, full(out, in[0].ndim() == 1, false), 1, bias ? 1 : 0);
  }

  private static final Op ADDMM =
      Op.function(
              "addmm",
              (in, a) -> {
                factors("addmm", in);
                Check.ndim("addmm", "mat1", in[1], 2);
                Check.ndim("addmm", "mat2", in[2], 2);
                if (in[1].size(1) != in[2].size(0)) {
                  throw mismatch("addmm", in[1], in[2]);
                }
                return TensorSpec.one(
                    addShape("addmm", in[0], in[1].size(0), in[2].size(1)), in[0].dtype());
              },
              (in, out, a) -> addKernel(in, out[0], a))
          .cuda((in, out, a) -> addOnGpu(in, out[0], a))
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> addGradient(ctx, g)));

  private static final Op BADDBMM =
      Op.function(
              "baddbmm",
              (in, a) -> {
                factors("baddbmm", in);
                Check.ndim("baddbmm", "batch1", in[1], 3);
                Check.ndim("baddbmm", "batch2", in[2], 3);
                if (in[1].size(2) != in[2].size(1) || in[1].size(0) != in[2].size(0)) {
                  throw mismatch("baddbmm", in[1], in[2]);
                }
                return TensorSpec.one(
                    addShape("baddbmm", in[0], in[1].size(0), in[1].size(1), in[2].size(2)),
                    in[0].dtype());
              },
              (in, out, a) -> addKernel(in, out[0], a))
          .cuda((in, out, a) -> addOnGpu(in, out[0], a))
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> addGradient(ctx, g)));

  private static long[] addShape(String op, Tensor input, long... product) {
    long[] s;
    try {
      s = dev.weft.tensor.Shapes.broadcast(input.shape(), product);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(op + ": " + e.getMessage(), e);
    }
    if (!Arrays.equals(s, product)) {
      throw Check.bad(
          op,
          "input has shape "
              + Arrays.toString(input.shape())
              + "; expected one that broadcasts to "
              + Arrays.toString(product));
    }
    return product;
  }

  /** Attributes: beta, alpha; both 1 where absent. */
  private static void addKernel(StridedTensor[] in, StridedTensor out, Attrs a) {
    double beta = a.isNull(0) ? 1 : a.doubleAt(0);
    double alpha = a.isNull(1) ? 1 : a.doubleAt(1);
    if (beta != 0) {
      dev.weft.tensor.cpu.CopyKernels.copy(in[0], out);
    }
    MatMulKernels.matmul(in[1], in[2], out, alpha, beta);
  }

  private static void addOnGpu(StridedTensor[] in, StridedTensor out, Attrs a) {
    double beta = a.isNull(0) ? 1 : a.doubleAt(0);
    double alpha = a.isNull(1) ? 1 : a.doubleAt(1);
    if (beta != 0) {
      CudaMatMul.broadcast(in[0], out);
    }
    CudaMatMul.matmul(in[1], in[2], out, alpha, beta);
  }

  private static @Nullable Tensor[] addGradient(Backward.Context ctx, Tensor g) {
    Attrs a = ctx.attrs();
    Op op = g.ndim() == 2 ? MM : BMM;
    Tensor h = a.isNull(1) ? g : Pointwise.mul(g, a.doubleAt(1));
    return new @Nullable Tensor[] {
      ctx.needs(0) ? Grads.reduce(ctx, 0, a.isNull(0) ? g : Pointwise.mul(g, a.doubleAt(0))) : null,
      ctx.needs(1)
          ? Dispatcher.call(op, Attrs.NONE, h, Views.transpose(ctx.input(2), -2, -1))
          : null,
      ctx.needs(2)
          ? Dispatcher.call(op, Attrs.NONE, Views.transpose(ctx.input(1), -2, -1), h)
          : null
    };
  }

  private static final Op DOT =
      Op.function(
              "dot",
              (in, a) -> {
                factors("dot", in);
                Check.ndim("dot", "input", in[0], 1);
                Check.ndim("dot", "tensor", in[1], 1);
                if (in[0].size(0) != in[1].size(0)) {
                  throw mismatch("dot", in);
                }
                return TensorSpec.one(new long[0], in[0].dtype());
              },
              (in, out, a) ->
                  MatMulKernels.matmul(row(in[0]), column(in[1]), full(out[0], true, true), 1, 0))
          .cuda(
              (in, out, a) ->
                  CudaMatMul.matmul(row(in[0]), column(in[1]), full(out[0], true, true), 1, 0))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Pointwise.mul(g, ctx.input(1)) : null,
                        ctx.needs(1) ? Pointwise.mul(g, ctx.input(0)) : null
                      }));

  /** The product of two matrices. */
  public static Tensor mm(Tensor a, Tensor b) {
    return Dispatcher.call(MM, Attrs.NONE, a, b);
  }

  /** The products of two equally long batches of matrices. */
  public static Tensor bmm(Tensor a, Tensor b) {
    return Dispatcher.call(BMM, Attrs.NONE, a, b);
  }

  /**
   * The product over the last dimension of {@code a} and the last but one of {@code b} (the only
   * one of a vector); the dimensions before those broadcast.
   */
  public static Tensor matmul(Tensor a, Tensor b) {
    return Dispatcher.call(MATMUL, Attrs.NONE, a, b);
  }

  /**
   * The sum over all leading positions of a[..., p] b[..., q], as [p, q]: the weight gradient of
   * {@link #linear}.
   */
  public static Tensor contractLeading(Tensor a, Tensor b) {
    return Dispatcher.call(CONTRACT_LEADING, Attrs.NONE, a, b);
  }

  /** x weight^T + bias for x [..., in], weight [out, in], bias [out] or null. */
  public static Tensor linear(Tensor x, Tensor weight, @Nullable Tensor bias) {
    return bias == null
        ? Dispatcher.call(LINEAR, Attrs.NONE, x, weight)
        : Dispatcher.call(LINEAR, Attrs.NONE, x, weight, bias);
  }

  /** input + a b for matrices. */
  public static Tensor addmm(Tensor input, Tensor a, Tensor b) {
    return Dispatcher.call(ADDMM, Attrs.of(null, null), input, a, b);
  }

  /** beta input + alpha a b for matrices; input is not read where beta is 0. */
  public static Tensor addmm(Tensor input, Tensor a, Tensor b, double beta, double alpha) {
    return Dispatcher.call(ADDMM, Attrs.of(beta, alpha), input, a, b);
  }

  /** beta input + alpha a b for batches of matrices. */
  public static Tensor baddbmm(Tensor input, Tensor a, Tensor b, double beta, double alpha) {
    return Dispatcher.call(BADDBMM, Attrs.of(beta, alpha), input, a, b);
  }

  /** The scalar product of two vectors. */
  public static Tensor dot(Tensor a, Tensor b) {
    return Dispatcher.call(DOT, Attrs.NONE, a, b);
  }

  /** The products of all pairs of two vectors' elements. */
  public static Tensor outer(Tensor a, Tensor b) {
    Check.ndim("outer", "input", a, 1);
    Check.ndim("outer", "vec2", b, 1);
    return Pointwise.mul(Views.unsqueeze(a, 1), b);
  }
}
