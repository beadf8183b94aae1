package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/** Copies between layouts and dtypes. */
public final class CopyKernels {
  private CopyKernels() {}

  /** Copies in row-major order; {@code from} broadcasts to the shape of {@code to}. */
  public static void copy(StridedTensor from, StridedTensor to) {
    long n = to.numel();
    if (n == 0) {
      return;
    }
    if (from.dtype() == to.dtype()
        && from.isContiguous()
        && to.isContiguous()
        && Arrays.equals(from.shape(), to.shape())) {
      Memory.copy(from.dataAddress(), to.dataAddress(), n * from.dtype().byteSize());
      return;
    }
    if (!to.isContiguous()) {
      Elementwise.requireNoOverlap(to);
    }
    if (from.storage() == to.storage()) {
      try (Temporaries temporaries = new Temporaries()) {
        move(temporaries.packed(from, from.dtype()), to, n);
      }
    } else {
      move(from, to, n);
    }
  }

  private static void move(StridedTensor from, StridedTensor to, long n) {
    Cursor in = new Cursor(from, to.shape());
    Cursor out = new Cursor(to);
    if (from.dtype() == to.dtype()) {
      copyRuns(in, out, n, from.dtype());
    } else {
      convert(Compute.of(from.dtype()), in, out, n);
    }
  }

  private static void copyRuns(Cursor in, Cursor out, long n, DType dtype) {
    int width = dtype.byteSize();
    long left = n;
    while (left > 0) {
      long run = Math.min(left, Math.min(in.run(), out.run()));
      copyRun(in.address(), in.step(), out.address(), out.step(), run, width);
      in.advance(run);
      out.advance(run);
      left -= run;
    }
  }

  private static void copyRun(long a, long aStep, long b, long bStep, long run, int width) {
    if (aStep == width && bStep == width) {
      Memory.copy(a, b, run * width);
      return;
    }
    switch (width) {
      case 8 -> {
        for (long i = 0; i < run; i++) {
          Memory.putLong(b + i * bStep, Memory.getLong(a + i * aStep));
        }
      }
      case 4 -> {
        for (long i = 0; i < run; i++) {
          Memory.putInt(b + i * bStep, Memory.getInt(a + i * aStep));
        }
      }
      case 2 -> {
        for (long i = 0; i < run; i++) {
          Memory.putShort(b + i * bStep, Memory.getShort(a + i * aStep));
        }
      }
      default -> {
        for (long i = 0; i < run; i++) {
          Memory.putByte(b + i * bStep, Memory.getByte(a + i * aStep));
        }
      }
    }
  }

  private static void convert(Compute compute, Cursor in, Cursor out, long n) {
    Scratch scratch = Scratch.get();
    for (long done = 0; done < n; done += Scratch.CHUNK) {
      int size = (int) Math.min(Scratch.CHUNK, n - done);
      switch (compute) {
        case FLOAT -> {
          float[] buffer = scratch.floats(0, size);
          in.read(buffer, 0, size);
          out.write(buffer, 0, size);
        }
        case DOUBLE -> {
          double[] buffer = scratch.doubles(0, size);
          in.read(buffer, 0, size);
          out.write(buffer, 0, size);
        }
        case LONG -> {
          long[] buffer = scratch.longs(0, size);
          in.read(buffer, 0, size);
          out.write(buffer, 0, size);
        }
      }
    }
  }

  /** Copies {@code from} but for a number where the mask (bool) is true; both broadcast. */
  public static void maskedFill(
      StridedTensor from, StridedTensor mask, StridedTensor to, Number value) {
    copy(from, to);
    maskedFill(to, mask, value);
  }

  /** Writes a number where the mask (bool), which broadcasts, is true. */
  public static void maskedFill(StridedTensor to, StridedTensor mask, Number value) {
    long left = to.numel();
    if (left == 0) {
      return;
    }
    if (!to.isContiguous()) {
      Elementwise.requireNoOverlap(to);
    }
    DType dtype = to.dtype();
    boolean exact = !dtype.isFloatingPoint();
    Cursor masks = new Cursor(mask, to.shape());
    Cursor out = new Cursor(to);
    while (left > 0) {
      long run = Math.min(left, Math.min(masks.run(), out.run()));
      long m = masks.address();
      long mStep = masks.step();
      long a = out.address();
      long aStep = out.step();
      for (long i = 0; i < run; i++) {
        if (mStep == 1 && i + 8 <= run && Memory.getLong(m + i) == 0) {
          i += 7; // eight elements that stay
        } else if (Memory.getByte(m + i * mStep) != 0) {
          if (dtype == DType.FLOAT32) {
            Memory.putFloat(a + i * aStep, value.floatValue());
          } else if (exact) {
            Elements.putLong(dtype, a + i * aStep, value.longValue());
          } else {
            Elements.putDouble(dtype, a + i * aStep, value.doubleValue());
          }
        }
      }
      masks.advance(run);
      out.advance(run);
      left -= run;
    }
  }
}
