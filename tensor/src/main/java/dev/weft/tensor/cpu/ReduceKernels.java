package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;

/** Reductions over any set of dimensions. float32 and narrower are summed in double. */
public final class ReduceKernels {
  private static final int CHUNK = Scratch.CHUNK;
  // Rows that are added up in float before they go into the double sums.
  private static final int BLOCK = 16;
  private static final int MAX_COLUMNS = 1 << 16;

  private ReduceKernels() {}

  /** The product. */
  public static void prod(StridedTensor in, StridedTensor out, int[] dims) {
    reduce(in, out, dims, new Reducer.Prod());
  }

  /** The largest or smallest element, or NaN. */
  public static void extremum(StridedTensor in, StridedTensor out, int[] dims, boolean max) {
    reduce(in, out, dims, new Reducer.Extremum(max));
  }

  /** The index of the first extremum within the reduced dimensions. */
  public static void argExtremum(StridedTensor in, StridedTensor out, int[] dims, boolean max) {
    reduce(in, out, dims, new Reducer.ArgExtremum(max));
  }

  /** Whether all, or any, elements are not 0. */
  public static void logic(StridedTensor in, StridedTensor out, int[] dims, boolean all) {
    reduceDoubles(in, out, dims, new Reducer.Logic(all));
  }

  /** The p-norm. */
  public static void norm(StridedTensor in, StridedTensor out, int[] dims, double p) {
    if (p == 2 && Compute.of(in.dtype()) == Compute.FLOAT) {
      norm2(in, out, dims);
    } else {
      reduceDoubles(in, out, dims, new Reducer.Norm(p));
    }
  }

  private static void norm2(StridedTensor in, StridedTensor out, int[] dims) {
    Plan plan = new Plan(in, dims);
    Cursor from = plan.outputMajor(in);
    Cursor to = new Cursor(out);
    float[] x = Scratch.get().floats(0, CHUNK);
    double[] one = Scratch.get().doubles(0, 1);
    for (long k = 0; k < plan.outputs; k++) {
      double sum = 0;
      for (long done = 0; done < plan.elements; done += CHUNK) {
        int n = (int) Math.min(CHUNK, plan.elements - done);
        from.read(x, 0, n);
        sum += NormKernels.dot(x, x, 0, n);
      }
      one[0] = Math.sqrt(sum);
      to.write(one, 0, 1);
    }
  }

  /** The variance, or its root. */
  public static void variance(
      StridedTensor in, StridedTensor out, int[] dims, double correction, boolean root) {
    reduceDoubles(in, out, dims, new Reducer.Variance(correction, root));
  }

  /** ln of the sum of exponentials. */
  public static void logSumExp(StridedTensor in, StridedTensor out, int[] dims) {
    reduceDoubles(in, out, dims, new Reducer.LogSumExp());
  }

  /** The sum divided by a number, 1 for the plain sum. */
  public static void sum(StridedTensor in, StridedTensor out, int[] dims, double divisor) {
    Plan plan = new Plan(in, dims);
    if (plan.outputs == 0) {
      return;
    }
    if (plan.elements == 0) {
      FillKernels.fill(out, divisor == 0 ? Double.NaN : 0);
      return;
    }
    boolean integral = !in.dtype().isFloatingPoint() && !out.dtype().isFloatingPoint();
    Cursor to = new Cursor(out);
    if (plan.keepsInnermost && plan.outputs <= MAX_COLUMNS) {
      sumColumns(in, plan, to, divisor, integral);
    } else {
      sumRows(in, plan, to, divisor, integral);
    }
  }

  /** How a reduction walks its input. */
  private static final class Plan {
    final int[] kept;
    final int[] dims;
    final long outputs;
    final long elements;
    // True where the elements of neighbouring outputs lie closest together in memory.
    final boolean keepsInnermost;

    Plan(StridedTensor in, int[] dims) {
      this.dims = dims;
      this.kept = Layouts.others(dims, in.ndim());
      this.outputs = product(in.shape(), kept);
      this.elements = product(in.shape(), dims);
      this.keepsInnermost = smallest(in, kept) < smallest(in, dims);
    }

    private static long product(long[] shape, int[] dims) {
      long n = 1;
      for (int d : dims) {
        n *= shape[d];
      }
      return n;
    }

    private static long smallest(StridedTensor in, int[] dims) {
      long least = Long.MAX_VALUE;
      for (int d : dims) {
        if (in.shape()[d] > 1) {
          least = Math.min(least, in.strides()[d]);
        }
      }
      return least;
    }

    Cursor cursor(StridedTensor in, int[] order) {
      return new Cursor(
          in.dtype(),
          in.dataAddress(),
          Layouts.pick(in.shape(), order),
          Layouts.pick(in.strides(), order));
    }

    Cursor outputMajor(StridedTensor in) {
      return cursor(in, Layouts.concat(kept, dims));
    }

    Cursor elementMajor(StridedTensor in) {
      return cursor(in, Layouts.concat(dims, kept));
    }
  }

  /** Adds whole rows of neighbouring outputs. */
  private static void sumColumns(
      StridedTensor in, Plan plan, Cursor to, double divisor, boolean integral) {
    Cursor from = plan.elementMajor(in);
    int n = (int) plan.outputs;
    Scratch scratch = Scratch.get();
    if (integral) {
      long[] sums = scratch.longs(0, n);
      long[] row = scratch.longs(1, n);
      java.util.Arrays.fill(sums, 0, n, 0);
      for (long r = 0; r < plan.elements; r++) {
        from.read(row, 0, n);
        for (int i = 0; i < n; i++) {
          sums[i] += row[i];
        }
      }
      to.write(sums, 0, n);
      return;
    }
    double[] sums = scratch.doubles(0, n);
    java.util.Arrays.fill(sums, 0, n, 0);
    if (Compute.of(in.dtype()) == Compute.FLOAT) {
      float[] block = scratch.floats(0, n);
      float[] row = scratch.floats(1, n);
      for (long r = 0; r < plan.elements; r += BLOCK) {
        from.read(block, 0, n);
        for (long k = r + 1; k < Math.min(r + BLOCK, plan.elements); k++) {
          from.read(row, 0, n);
          for (int i = 0; i < n; i++) {
            block[i] += row[i];
          }
        }
        for (int i = 0; i < n; i++) {
          sums[i] += block[i];
        }
      }
    } else {
      double[] row = scratch.doubles(1, n);
      for (long r = 0; r < plan.elements; r++) {
        from.read(row, 0, n);
        for (int i = 0; i < n; i++) {
          sums[i] += row[i];
        }
      }
    }
    if (divisor != 1) {
      for (int i = 0; i < n; i++) {
        sums[i] /= divisor;
      }
    }
    to.write(sums, 0, n);
  }

  private static void sumRows(
      StridedTensor in, Plan plan, Cursor to, double divisor, boolean integral) {
    Cursor from = plan.outputMajor(in);
    Scratch scratch = Scratch.get();
    boolean floats = Compute.of(in.dtype()) == Compute.FLOAT;
    float[] f = scratch.floats(0, CHUNK);
    double[] d = scratch.doubles(0, CHUNK);
    long[] l = scratch.longs(0, CHUNK);
    double[] one = scratch.doubles(1, 1);
    long[] oneLong = scratch.longs(1, 1);
    for (long k = 0; k < plan.outputs; k++) {
      double sum = 0;
      long longSum = 0;
      for (long done = 0; done < plan.elements; done += CHUNK) {
        int n = (int) Math.min(CHUNK, plan.elements - done);
        if (integral) {
          from.read(l, 0, n);
          for (int i = 0; i < n; i++) {
            longSum += l[i];
          }
        } else if (floats) {
          from.read(f, 0, n);
          sum += sum(f, n);
        } else {
          from.read(d, 0, n);
          for (int i = 0; i < n; i++) {
            sum += d[i];
          }
        }
      }
      if (integral) {
        oneLong[0] = longSum;
        to.write(oneLong, 0, 1);
      } else {
        one[0] = sum / divisor;
        to.write(one, 0, 1);
      }
    }
  }

  /** The sum in double, in four interleaved parts. */
  static double sum(float[] values, int n) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = 0;
    for (; i + 3 < n; i += 4) {
      a += values[i];
      b += values[i + 1];
      c += values[i + 2];
      d += values[i + 3];
    }
    for (; i < n; i++) {
      a += values[i];
    }
    return (a + b) + (c + d);
  }

  private static void reduce(StridedTensor in, StridedTensor out, int[] dims, Reducer reducer) {
    if (Compute.of(in.dtype()) != Compute.LONG) {
      reduceDoubles(in, out, dims, reducer);
      return;
    }
    Plan plan = new Plan(in, dims);
    Cursor from = plan.outputMajor(in);
    Cursor to = new Cursor(out);
    long[] values = Scratch.get().longs(0, CHUNK);
    long[] one = Scratch.get().longs(1, 1);
    for (long k = 0; k < plan.outputs; k++) {
      reducer.start();
      for (long done = 0; done < plan.elements; done += CHUNK) {
        int n = (int) Math.min(CHUNK, plan.elements - done);
        from.read(values, 0, n);
        reducer.accept(values, 0, n);
      }
      one[0] = reducer.longResult();
      to.write(one, 0, 1);
    }
  }

  private static void reduceDoubles(
      StridedTensor in, StridedTensor out, int[] dims, Reducer reducer) {
    Plan plan = new Plan(in, dims);
    Cursor from = plan.outputMajor(in);
    Cursor to = new Cursor(out);
    double[] values = Scratch.get().doubles(0, CHUNK);
    double[] one = Scratch.get().doubles(1, 1);
    for (long k = 0; k < plan.outputs; k++) {
      reducer.start();
      for (long done = 0; done < plan.elements; done += CHUNK) {
        int n = (int) Math.min(CHUNK, plan.elements - done);
        from.read(values, 0, n);
        reducer.accept(values, 0, n);
      }
      one[0] = reducer.result();
      to.write(one, 0, 1);
    }
  }

  /** The gradient of the product: g times the product of all other elements. */
  public static void prodBackward(
      StridedTensor g, StridedTensor in, StridedTensor out, int[] dims) {
    Plan plan = new Plan(in, dims);
    int n = Math.toIntExact(plan.elements);
    if (n == 0) {
      return;
    }
    Cursor from = plan.outputMajor(in);
    Cursor to = plan.outputMajor(out);
    Cursor gradients = new Cursor(g);
    double[] x = Scratch.get().doubles(0, n);
    double[] rest = Scratch.get().doubles(1, n);
    double[] one = Scratch.get().doubles(2, 1);
    for (long k = 0; k < plan.outputs; k++) {
      from.read(x, 0, n);
      gradients.read(one, 0, 1);
      double before = one[0];
      for (int i = 0; i < n; i++) {
        rest[i] = before;
        before *= x[i];
      }
      double after = 1;
      for (int i = n - 1; i >= 0; i--) {
        rest[i] *= after;
        after *= x[i];
      }
      to.write(rest, 0, n);
    }
  }
}
