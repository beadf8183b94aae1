package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;

/**
 * Attention computed in float32, sums in float64: BLAS reads and writes the heads where they lie,
 * and a head's scores are the only matrix that is made. Keys that a query does not see cost no
 * exponential.
 */
final class FloatAttention {
  private final double scale;
  private final boolean causal;
  private final int sequenceDim;

  FloatAttention(double scale, boolean causal, int sequenceDim) {
    this.scale = scale;
    this.causal = causal;
    this.sequenceDim = sequenceDim;
  }

  /** Rows of float32 so many elements apart. */
  private record Matrix(long address, int stride) {
    long row(int i) {
      return address + (long) Float.BYTES * i * stride;
    }
  }

  /** A tensor of heads whose rows BLAS can read; strides in elements. */
  private record Heads(long address, long batch, long head, int row) {
    Matrix at(long b, long h) {
      return new Matrix(address + Float.BYTES * (b * batch + h * head), row);
    }
  }

  /** c[m,n] = alpha op(a) op(b), summed over k. */
  private static void product(
      boolean ta, boolean tb, int m, int n, int k, double alpha, Matrix a, Matrix b, Matrix c) {
    Blas.get()
        .sgemm(
            ta,
            tb,
            m,
            n,
            k,
            (float) alpha,
            a.address,
            a.stride,
            b.address,
            b.stride,
            0,
            c.address,
            c.stride);
  }

  private Heads heads(StridedTensor t) {
    long[] d = t.strides();
    return new Heads(t.dataAddress(), d[0], d[3 - sequenceDim], Math.toIntExact(d[sequenceDim]));
  }

  private Heads in(Temporaries temporaries, StridedTensor t) {
    long width = t.shape()[3];
    long row = t.strides()[sequenceDim];
    boolean readable =
        t.dtype() == DType.FLOAT32
            && (t.strides()[3] == 1 || width == 1)
            && row >= width
            && row <= Integer.MAX_VALUE;
    return heads(readable ? t : temporaries.packed(t, DType.FLOAT32));
  }

  /** Where a result can be written: itself, or something to be copied to it. */
  private static StridedTensor out(Temporaries temporaries, StridedTensor t) {
    return t.dtype() == DType.FLOAT32 && t.isContiguous()
        ? t
        : temporaries.empty(DType.FLOAT32, t.shape());
  }

  private static Matrix matrix(Temporaries temporaries, int rows, int columns) {
    return new Matrix(temporaries.empty(DType.FLOAT32, rows, columns).dataAddress(), columns);
  }

  private int seen(int query, int keys) {
    return causal ? Math.min(keys, query + 1) : keys;
  }

  /** See {@link AttentionKernels#forward}; no size is 0. */
  void forward(StridedTensor[] in, StridedTensor[] out) {
    int queries = Math.toIntExact(in[0].shape()[sequenceDim]);
    int keys = Math.toIntExact(in[1].shape()[sequenceDim]);
    int width = Math.toIntExact(in[0].shape()[3]);
    long batch = in[0].shape()[0];
    long count = in[0].shape()[3 - sequenceDim];
    try (Temporaries temporaries = new Temporaries()) {
      Heads q = in(temporaries, in[0]);
      Heads k = in(temporaries, in[1]);
      Heads v = in(temporaries, in[2]);
      StridedTensor result = out(temporaries, out[0]);
      Heads o = heads(result);
      Matrix scores = matrix(temporaries, queries, keys);
      float[] sums = new float[queries];
      Cursor lse = new Cursor(out[1]);
      for (long b = 0; b < batch; b++) {
        for (long h = 0; h < count; h++) {
          product(false, true, queries, keys, width, scale, q.at(b, h), k.at(b, h), scores);
          softmax(scores, queries, keys, sums);
          lse.write(sums, 0, queries);
          product(false, false, queries, width, keys, 1, scores, v.at(b, h), o.at(b, h));
        }
      }
      if (result != out[0]) {
        CopyKernels.copy(result, out[0]);
      }
    }
  }

  /** Scores to probabilities, and the logarithm of each row's sum. */
  private void softmax(Matrix scores, int queries, int keys, float[] sums) {
    int rows = Math.max(1, Scratch.CHUNK / keys);
    float[] x = Scratch.get().floats(0, rows * keys);
    for (int first = 0; first < queries; first += rows) {
      int end = Math.min(queries, first + rows);
      int at = 0;
      for (int i = first; i < end; i++) {
        int n = seen(i, keys);
        Memory.get(scores.row(i), x, at, n);
        float max = SoftmaxKernels.max(x, at, n);
        for (int j = at; j < at + n; j++) {
          x[j] -= max;
        }
        sums[i] = max;
        at += n;
      }
      FastMath.exp(x, x, at);
      at = 0;
      for (int i = first; i < end; i++) {
        int n = seen(i, keys);
        double sum = SoftmaxKernels.sum(x, at, n);
        float inverse = (float) (1 / sum);
        for (int j = at; j < at + n; j++) {
          x[j] *= inverse;
        }
        sums[i] = (float) (sums[i] + Math.log(sum));
        put(x, at, n, scores.row(i), keys);
        at += n;
      }
    }
  }

  /** Writes the first elements of a row, and zeros behind them. */
  private static void put(float[] x, int at, int n, long row, int columns) {
    Memory.put(row, x, at, n);
    if (n < columns) {
      Memory.fill(row + (long) Float.BYTES * n, (long) Float.BYTES * (columns - n), (byte) 0);
    }
  }

  /** See {@link AttentionKernels#backward}; no size is 0. */
  void backward(StridedTensor[] in, StridedTensor[] out) {
    int queries = Math.toIntExact(in[1].shape()[sequenceDim]);
    int keys = Math.toIntExact(in[2].shape()[sequenceDim]);
    int width = Math.toIntExact(in[1].shape()[3]);
    long batch = in[1].shape()[0];
    long count = in[1].shape()[3 - sequenceDim];
    try (Temporaries temporaries = new Temporaries()) {
      Heads g = in(temporaries, in[0]);
      Heads q = in(temporaries, in[1]);
      Heads k = in(temporaries, in[2]);
      Heads v = in(temporaries, in[3]);
      Heads o = in(temporaries, in[4]);
      StridedTensor[] results = new StridedTensor[3];
      for (int i = 0; i < 3; i++) {
        results[i] = out(temporaries, out[i]);
      }
      Heads gq = heads(results[0]);
      Heads gk = heads(results[1]);
      Heads gv = heads(results[2]);
      Matrix p = matrix(temporaries, queries, keys);
      Matrix d = matrix(temporaries, queries, keys);
      float[] sums = new float[queries];
      float[] means = new float[queries];
      Cursor lse = new Cursor(in[5]);
      for (long b = 0; b < batch; b++) {
        for (long h = 0; h < count; h++) {
          lse.read(sums, 0, queries);
          Matrix gradient = g.at(b, h);
          means(gradient, o.at(b, h), queries, width, means);
          product(false, true, queries, keys, width, scale, q.at(b, h), k.at(b, h), p);
          product(false, true, queries, keys, width, 1, gradient, v.at(b, h), d);
          changes(p, d, queries, keys, sums, means);
          product(false, false, queries, width, keys, scale, d, k.at(b, h), gq.at(b, h));
          product(true, false, keys, width, queries, scale, d, q.at(b, h), gk.at(b, h));
          product(true, false, keys, width, queries, 1, p, gradient, gv.at(b, h));
        }
      }
      for (int i = 0; i < 3; i++) {
        if (results[i] != out[i]) {
          CopyKernels.copy(results[i], out[i]);
        }
      }
    }
  }

  /** The scalar products of the rows of two matrices. */
  private static void means(Matrix g, Matrix o, int queries, int width, float[] means) {
    Scratch scratch = Scratch.get();
    float[] x = scratch.floats(0, width);
    float[] y = scratch.floats(1, width);
    for (int i = 0; i < queries; i++) {
      Memory.get(g.row(i), x, 0, width);
      Memory.get(o.row(i), y, 0, width);
      means[i] = (float) NormKernels.dot(x, y, 0, width);
    }
  }

  /** Scores to probabilities p, and the probabilities' gradients d to those of the scores. */
  private void changes(Matrix p, Matrix d, int queries, int keys, float[] sums, float[] means) {
    int rows = Math.max(1, Scratch.CHUNK / keys);
    Scratch scratch = Scratch.get();
    float[] x = scratch.floats(0, rows * keys);
    float[] y = scratch.floats(1, rows * keys);
    for (int first = 0; first < queries; first += rows) {
      int end = Math.min(queries, first + rows);
      int at = 0;
      for (int i = first; i < end; i++) {
        int n = seen(i, keys);
        Memory.get(p.row(i), x, at, n);
        Memory.get(d.row(i), y, at, n);
        float sum = sums[i];
        float mean = means[i];
        for (int j = at; j < at + n; j++) {
          x[j] -= sum;
          y[j] -= mean;
        }
        at += n;
      }
      FastMath.exp(x, x, at);
      for (int j = 0; j < at; j++) {
        y[j] *= x[j];
      }
      at = 0;
      for (int i = first; i < end; i++) {
        int n = seen(i, keys);
        put(x, at, n, p.row(i), keys);
        put(y, at, n, d.row(i), keys);
        at += n;
      }
    }
  }
}
