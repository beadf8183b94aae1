package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import org.jspecify.annotations.Nullable;

/**
 * Random values. Each element's value depends on its row-major index in the whole tensor, of which
 * the tensor at hand may be a block.
 */
public final class RandomKernels {
  private RandomKernels() {}

  /**
   * Where the numbers come from.
   *
   * @param seed of the stream
   * @param offset of its first block
   * @param globalShape the whole tensor's shape where this is a block of it, else null
   * @param start the block's first position in each dimension
   */
  public record Source(
      long seed, long offset, long @Nullable [] globalShape, long @Nullable [] start) {}

  /** Indices in the whole tensor of consecutive elements of a block. */
  private static final class Index {
    private final long[] shape;
    private final long[] strides;
    private final long[] start;
    private final long[] at;
    private long index;

    Index(StridedTensor t, Source s) {
      shape = t.shape();
      start = s.start == null ? new long[shape.length] : s.start;
      strides = Shapes.contiguousStrides(s.globalShape == null ? shape : s.globalShape);
      at = new long[shape.length];
      for (int d = 0; d < shape.length; d++) {
        index += start[d] * strides[d];
      }
    }

    long next() {
      long result = index;
      for (int d = shape.length - 1; d >= 0; d--) {
        at[d]++;
        index += strides[d];
        if (at[d] < shape[d]) {
          break;
        }
        index -= at[d] * strides[d];
        at[d] = 0;
      }
      return result;
    }
  }

  /** Uniform in [low, high). */
  public static void uniform(StridedTensor out, Source s, double low, double high) {
    Philox philox = new Philox(s.seed, s.offset);
    Index index = new Index(out, s);
    boolean single = out.dtype() != DType.FLOAT64;
    write(
        out,
        () -> {
          long i = index.next();
          double u = single ? philox.nextFloat(i) : philox.nextDouble(i);
          return low + (high - low) * u;
        });
  }

  /** Normal of a mean and standard deviation. */
  public static void normal(StridedTensor out, Source s, double mean, double std) {
    Philox philox = new Philox(s.seed, s.offset);
    Index index = new Index(out, s);
    write(out, () -> mean + std * philox.nextNormal(index.next()));
  }

  /** Integers in [low, high). */
  public static void integers(StridedTensor out, Source s, long low, long high) {
    Philox philox = new Philox(s.seed, s.offset);
    Index index = new Index(out, s);
    long n = out.numel();
    Cursor to = new Cursor(out);
    long[] buffer = Scratch.get().longs(0, Scratch.CHUNK);
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      for (int i = 0; i < size; i++) {
        buffer[i] = low + (philox.bits(index.next()) >>> 1) % (high - low);
      }
      to.write(buffer, 0, size);
    }
  }

  private interface Source64 {
    double next();
  }

  private static void write(StridedTensor out, Source64 values) {
    long n = out.numel();
    Cursor to = new Cursor(out);
    double[] buffer = Scratch.get().doubles(0, Scratch.CHUNK);
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      for (int i = 0; i < size; i++) {
        buffer[i] = values.next();
      }
      to.write(buffer, 0, size);
    }
  }

  /** x / (1 - p) with probability 1 - p, else 0. */
  public static void dropout(StridedTensor in, StridedTensor out, Source s, double p) {
    Philox philox = new Philox(s.seed, s.offset);
    Index index = new Index(out, s);
    double scale = p == 1 ? 0 : 1 / (1 - p);
    long n = out.numel();
    Cursor from = new Cursor(in);
    Cursor to = new Cursor(out);
    double[] x = Scratch.get().doubles(0, Scratch.CHUNK);
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      from.read(x, 0, size);
      for (int i = 0; i < size; i++) {
        x[i] = philox.nextFloat(index.next()) < p ? 0 : x[i] * scale;
      }
      to.write(x, 0, size);
    }
  }
}
