package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;

/**
 * Scaled dot-product attention of heads [batch, heads, sequence, width], or [batch, sequence,
 * heads, width], one head after the other; computed in float32, or float64 for float64.
 */
public final class AttentionKernels {
  private AttentionKernels() {}

  /** [length, width] of a head. */
  private static StridedTensor head(StridedTensor t, long b, long h, int sequenceDim) {
    long[] s = t.shape();
    long[] d = t.strides();
    int headDim = 3 - sequenceDim;
    return t.withLayout(
        new long[] {s[sequenceDim], s[3]},
        new long[] {d[sequenceDim], d[3]},
        t.offset() + b * d[0] + h * d[headDim]);
  }

  private static StridedTensor transposed(StridedTensor t) {
    return t.withLayout(
        new long[] {t.shape()[1], t.shape()[0]},
        new long[] {t.strides()[1], t.strides()[0]},
        t.offset());
  }

  /** As BLAS takes it, in the dtype of the computation. */
  private static StridedTensor wide(Temporaries temporaries, StridedTensor t, DType dtype) {
    return temporaries.contiguous(t, dtype);
  }

  private static int seen(boolean causal, int query, int keys) {
    return causal ? Math.min(keys, query + 1) : keys;
  }

  /**
   * The result and the logarithm of the sum of e^score for each query.
   *
   * @param in q, k, v
   * @param out the result and lse [batch, heads, queries]
   */
  public static void forward(
      StridedTensor[] in, StridedTensor[] out, double scale, boolean causal, int sequenceDim) {
    DType dtype = out[1].dtype();
    if (dtype == DType.FLOAT32 && in[0].numel() > 0 && in[1].numel() > 0) {
      new FloatAttention(scale, causal, sequenceDim).forward(in, out);
      return;
    }
    int queries = Math.toIntExact(in[0].shape()[sequenceDim]);
    int keys = Math.toIntExact(in[1].shape()[sequenceDim]);
    long heads = in[0].shape()[3 - sequenceDim];
    double[] row = new double[keys];
    double[] sums = new double[queries];
    Cursor lse = new Cursor(out[1]);
    for (long b = 0; b < in[0].shape()[0]; b++) {
      for (long h = 0; h < heads; h++) {
        try (Temporaries temporaries = new Temporaries()) {
          StridedTensor q = wide(temporaries, head(in[0], b, h, sequenceDim), dtype);
          StridedTensor k = wide(temporaries, head(in[1], b, h, sequenceDim), dtype);
          StridedTensor v = wide(temporaries, head(in[2], b, h, sequenceDim), dtype);
          StridedTensor scores = temporaries.empty(dtype, queries, keys);
          MatMulKernels.matmul(q, transposed(k), scores, scale, 0);
          Cursor from = new Cursor(scores);
          Cursor to = new Cursor(scores);
          for (int i = 0; i < queries; i++) {
            from.read(row, 0, keys);
            sums[i] = softmax(row, seen(causal, i, keys), keys);
            to.write(row, 0, keys);
          }
          lse.write(sums, 0, queries);
          StridedTensor mixed = temporaries.empty(dtype, queries, v.shape()[1]);
          MatMulKernels.matmul(scores, v, mixed, 1, 0);
          CopyKernels.copy(mixed, head(out[0], b, h, sequenceDim));
        }
      }
    }
  }

  /** Scores to probabilities; returns the logarithm of their sum. */
  private static double softmax(double[] row, int seen, int keys) {
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < seen; i++) {
      max = Math.max(max, row[i]);
    }
    double sum = 0;
    for (int i = 0; i < seen; i++) {
      row[i] = Math.exp(row[i] - max);
      sum += row[i];
    }
    for (int i = 0; i < keys; i++) {
      row[i] = i < seen ? row[i] / sum : 0;
    }
    return seen == 0 ? Double.NEGATIVE_INFINITY : max + Math.log(sum);
  }

  /**
   * The gradients of q, k and v.
   *
   * @param in the gradient of the result, q, k, v, the result and lse
   */
  public static void backward(
      StridedTensor[] in, StridedTensor[] out, double scale, boolean causal, int sequenceDim) {
    DType dtype = in[5].dtype();
    if (dtype == DType.FLOAT32 && in[1].numel() > 0 && in[2].numel() > 0) {
      new FloatAttention(scale, causal, sequenceDim).backward(in, out);
      return;
    }
    int queries = Math.toIntExact(in[1].shape()[sequenceDim]);
    int keys = Math.toIntExact(in[2].shape()[sequenceDim]);
    int width = Math.toIntExact(in[1].shape()[3]);
    long heads = in[1].shape()[3 - sequenceDim];
    double[] p = new double[keys];
    double[] d = new double[keys];
    double[] x = new double[width];
    double[] y = new double[width];
    double[] sums = new double[queries];
    Cursor lse = new Cursor(in[5]);
    for (long b = 0; b < in[1].shape()[0]; b++) {
      for (long h = 0; h < heads; h++) {
        lse.read(sums, 0, queries);
        try (Temporaries temporaries = new Temporaries()) {
          StridedTensor g = wide(temporaries, head(in[0], b, h, sequenceDim), dtype);
          StridedTensor q = wide(temporaries, head(in[1], b, h, sequenceDim), dtype);
          StridedTensor k = wide(temporaries, head(in[2], b, h, sequenceDim), dtype);
          StridedTensor v = wide(temporaries, head(in[3], b, h, sequenceDim), dtype);
          StridedTensor scores = temporaries.empty(dtype, queries, keys);
          StridedTensor changes = temporaries.empty(dtype, queries, keys);
          MatMulKernels.matmul(q, transposed(k), scores, scale, 0);
          MatMulKernels.matmul(g, transposed(v), changes, 1, 0);
          Cursor gs = new Cursor(g);
          Cursor os = new Cursor(head(in[4], b, h, sequenceDim));
          Cursor pIn = new Cursor(scores);
          Cursor pOut = new Cursor(scores);
          Cursor dIn = new Cursor(changes);
          Cursor dOut = new Cursor(changes);
          for (int i = 0; i < queries; i++) {
            gs.read(x, 0, width);
            os.read(y, 0, width);
            double mean = 0;
            for (int e = 0; e < width; e++) {
              mean += x[e] * y[e];
            }
            pIn.read(p, 0, keys);
            dIn.read(d, 0, keys);
            int seen = seen(causal, i, keys);
            for (int j = 0; j < keys; j++) {
              p[j] = j < seen ? Math.exp(p[j] - sums[i]) : 0;
              d[j] = j < seen ? p[j] * (d[j] - mean) : 0;
            }
            pOut.write(p, 0, keys);
            dOut.write(d, 0, keys);
          }
          product(temporaries, changes, k, scale, head(out[0], b, h, sequenceDim));
          product(temporaries, transposed(changes), q, scale, head(out[1], b, h, sequenceDim));
          product(temporaries, transposed(scores), g, 1, head(out[2], b, h, sequenceDim));
        }
      }
    }
  }

  private static void product(
      Temporaries temporaries, StridedTensor a, StridedTensor b, double alpha, StridedTensor to) {
    long[] shape = {a.shape()[0], b.shape()[1]};
    if (Shapes.numel(shape) == 0) {
      return;
    }
    StridedTensor c = temporaries.empty(a.dtype(), shape);
    MatMulKernels.matmul(a, b, c, alpha, 0);
    CopyKernels.copy(c, to);
  }
}
