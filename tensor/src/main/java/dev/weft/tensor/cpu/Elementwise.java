package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.op.Attrs;
import java.util.Arrays;

/** Runs elementwise loops over tensors of any layout and dtype, a staged chunk at a time. */
public final class Elementwise {
  private static final int CHUNK = Scratch.CHUNK;

  private Elementwise() {}

  /**
   * Computes {@code out} from inputs that broadcast to its shape.
   *
   * @param dtype the dtype to compute in; inputs are converted to its compute type
   */
  public static void run(
      Loops loops, DType dtype, StridedTensor[] in, StridedTensor out, Attrs attrs) {
    long n = out.numel();
    if (n == 0) {
      return;
    }
    if (!out.isContiguous()) {
      requireNoOverlap(out);
    }
    try (Temporaries temporaries = new Temporaries()) {
      compute(loops, dtype, separate(temporaries, in, out), out, n, attrs);
    }
  }

  private static void compute(
      Loops loops, DType dtype, StridedTensor[] inputs, StridedTensor out, long n, Attrs attrs) {
    long[] shape = out.shape();
    Cursor[] from = new Cursor[inputs.length];
    for (int i = 0; i < from.length; i++) {
      from[i] = new Cursor(inputs[i], shape);
    }
    Cursor to = new Cursor(out);
    int chunk = (int) Math.min(n, CHUNK);
    switch (Compute.of(dtype)) {
      case FLOAT -> floats(loops, from, to, n, chunk, attrs);
      case DOUBLE -> doubles(loops, from, to, n, chunk, attrs);
      case LONG -> longs(loops, from, to, n, chunk, attrs);
    }
  }

  private static void floats(
      Loops loops, Cursor[] from, Cursor to, long n, int chunk, Attrs attrs) {
    Loops.Floats loop = loops.floats();
    if (loop == null) {
      throw new UnsupportedOperationException("no floating-point loop");
    }
    Scratch scratch = Scratch.get();
    float[][] buffers = new float[from.length][];
    for (int i = 0; i < from.length; i++) {
      buffers[i] = scratch.floats(i + 1, chunk);
    }
    float[] result = scratch.floats(0, chunk);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      for (int i = 0; i < from.length; i++) {
        from[i].read(buffers[i], 0, size);
      }
      loop.run(buffers, result, size, attrs);
      to.write(result, 0, size);
    }
  }

  private static void doubles(
      Loops loops, Cursor[] from, Cursor to, long n, int chunk, Attrs attrs) {
    Loops.Doubles loop = loops.doubles();
    if (loop == null) {
      throw new UnsupportedOperationException("no float64 loop");
    }
    Scratch scratch = Scratch.get();
    double[][] buffers = new double[from.length][];
    for (int i = 0; i < from.length; i++) {
      buffers[i] = scratch.doubles(i + 1, chunk);
    }
    double[] result = scratch.doubles(0, chunk);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      for (int i = 0; i < from.length; i++) {
        from[i].read(buffers[i], 0, size);
      }
      loop.run(buffers, result, size, attrs);
      to.write(result, 0, size);
    }
  }

  private static void longs(Loops loops, Cursor[] from, Cursor to, long n, int chunk, Attrs attrs) {
    Loops.Longs loop = loops.longs();
    if (loop == null) {
      throw new UnsupportedOperationException("no integer loop");
    }
    Scratch scratch = Scratch.get();
    long[][] buffers = new long[from.length][];
    for (int i = 0; i < from.length; i++) {
      buffers[i] = scratch.longs(i + 1, chunk);
    }
    long[] result = scratch.longs(0, chunk);
    for (long done = 0; done < n; done += CHUNK) {
      int size = (int) Math.min(CHUNK, n - done);
      for (int i = 0; i < from.length; i++) {
        from[i].read(buffers[i], 0, size);
      }
      loop.run(buffers, result, size, attrs);
      to.write(result, 0, size);
    }
  }

  /** Copies inputs that overlap the output in another layout: none is overwritten unread. */
  private static StridedTensor[] separate(
      Temporaries temporaries, StridedTensor[] in, StridedTensor out) {
    StridedTensor[] inputs = in;
    for (int i = 0; i < in.length; i++) {
      if (in[i] != out && in[i].storage() == out.storage() && !sameLayout(in[i], out)) {
        if (inputs == in) {
          inputs = in.clone();
        }
        inputs[i] = temporaries.packed(in[i], in[i].dtype());
      }
    }
    return inputs;
  }

  /** Refuses a target in which several elements lie at one address. */
  static void requireNoOverlap(StridedTensor out) {
    for (int d = 0; d < out.ndim(); d++) {
      if (out.strides()[d] == 0 && out.shape()[d] > 1) {
        throw new IllegalArgumentException(
            "an expanded tensor (shape "
                + Arrays.toString(out.shape())
                + ", strides "
                + Arrays.toString(out.strides())
                + ") cannot be written: several elements share memory; clone it first");
      }
    }
  }

  private static boolean sameLayout(StridedTensor a, StridedTensor b) {
    return a.offset() == b.offset()
        && a.dtype() == b.dtype()
        && Arrays.equals(a.shape(), b.shape())
        && Arrays.equals(a.strides(), b.strides());
  }
}
