package dev.weft.tensor.cpu;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.op.Attrs;

/** The sum of squares of many tensors, and their scaling. */
public final class ForeachKernels {
  private ForeachKernels() {}

  /** out = the sum of all squares, in double. */
  public static void squares(StridedTensor[] in, StridedTensor out) {
    double[] x = Scratch.get().doubles(0, Scratch.CHUNK);
    double sum = 0;
    for (StridedTensor t : in) {
      Cursor from = new Cursor(t);
      long n = t.numel();
      for (long done = 0; done < n; done += Scratch.CHUNK) {
        int size = (int) Math.min(Scratch.CHUNK, n - done);
        from.read(x, 0, size);
        double part = 0;
        for (int i = 0; i < size; i++) {
          part += x[i] * x[i];
        }
        sum += part;
      }
    }
    x[0] = sum;
    new Cursor(out).write(x, 0, 1);
  }

  /** Multiplies all but the last by min(1, most / (norm + 1e-6)); the last is the norm's square. */
  public static void clip(StridedTensor[] in, double most) {
    double[] square = new double[1];
    new Cursor(in[in.length - 1]).read(square, 0, 1);
    double factor = most / (Math.sqrt(square[0]) + 1e-6);
    if (factor >= 1) {
      return;
    }
    for (int i = 0; i < in.length - 1; i++) {
      Elementwise.run(
          ArithmeticLoops.MUL_SCALAR,
          in[i].dtype(),
          new StridedTensor[] {in[i]},
          in[i],
          Attrs.of(factor));
    }
  }
}
