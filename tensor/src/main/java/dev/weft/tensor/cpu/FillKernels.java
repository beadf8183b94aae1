package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/** Constant values and sequences. */
public final class FillKernels {
  private FillKernels() {}

  /** Sets every element; any strides. */
  public static void fill(StridedTensor t, Number value) {
    long n = t.numel();
    if (n == 0) {
      return;
    }
    DType dtype = t.dtype();
    boolean exact = value instanceof Long || value instanceof Integer;
    if (t.isContiguous() && Double.doubleToRawLongBits(value.doubleValue()) == 0) {
      Memory.fill(t.dataAddress(), n * dtype.byteSize(), (byte) 0);
      return;
    }
    Cursor out = new Cursor(t);
    Scratch scratch = Scratch.get();
    int chunk = (int) Math.min(n, Scratch.CHUNK);
    if (Compute.of(dtype) == Compute.FLOAT) {
      float[] buffer = scratch.floats(0, chunk);
      Arrays.fill(buffer, 0, chunk, value.floatValue());
      for (long done = 0; done < n; done += chunk) {
        out.write(buffer, 0, (int) Math.min(chunk, n - done));
      }
    } else if (exact) {
      long[] buffer = scratch.longs(0, chunk);
      Arrays.fill(buffer, 0, chunk, value.longValue());
      for (long done = 0; done < n; done += chunk) {
        out.write(buffer, 0, (int) Math.min(chunk, n - done));
      }
    } else {
      double[] buffer = scratch.doubles(0, chunk);
      Arrays.fill(buffer, 0, chunk, value.doubleValue());
      for (long done = 0; done < n; done += chunk) {
        out.write(buffer, 0, (int) Math.min(chunk, n - done));
      }
    }
  }

  /** Sets a vector to start, start + step, ... */
  public static void arange(StridedTensor t, Number start, Number step) {
    Cursor out = new Cursor(t);
    long n = t.numel();
    boolean exact = !t.dtype().isFloatingPoint();
    Scratch scratch = Scratch.get();
    double[] doubles = scratch.doubles(0, Scratch.CHUNK);
    long[] longs = scratch.longs(0, Scratch.CHUNK);
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      for (int i = 0; i < size; i++) {
        if (exact) {
          longs[i] = start.longValue() + (done + i) * step.longValue();
        } else {
          doubles[i] = start.doubleValue() + (done + i) * step.doubleValue();
        }
      }
      if (exact) {
        out.write(longs, 0, size);
      } else {
        out.write(doubles, 0, size);
      }
    }
  }
}
