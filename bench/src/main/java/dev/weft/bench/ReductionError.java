package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;

/**
 * The error of sums over ranks in float16 and bfloat16 against float64: of the host backend, which
 * sums in float32 and rounds once, and of adding rank after rank in the narrow type.
 */
public final class ReductionError {
  private static final int ELEMENTS = 4096;

  private ReductionError() {}

  /**
   * Measures one world of threads.
   *
   * @param dtype float16 or bfloat16
   * @param ranks at least 2
   * @return the relative error in the 2-norm of the host backend's sum, and of a chain of additions
   */
  public static double[] of(DType dtype, int ranks) {
    try (TensorScope scope = TensorScope.open()) {
      double[] exact = new double[ELEMENTS];
      Tensor chain = input(dtype, 0);
      for (int r = 0; r < ranks; r++) {
        Tensor mine = input(dtype, r);
        double[] values = mine.toDoubleArray();
        for (int i = 0; i < ELEMENTS; i++) {
          exact[i] += values[i];
        }
        chain = r == 0 ? mine : Pointwise.add(chain, mine);
      }
      double[] reduced =
          LocalWorld.call(
                  ranks,
                  rank -> {
                    Tensor t = input(dtype, rank);
                    Distributed.allReduce(t, ReduceOp.SUM).await();
                    return t.toDoubleArray();
                  })
              .get(0);
      return new double[] {error(reduced, exact), error(chain.toDoubleArray(), exact)};
    }
  }

  private static Tensor input(DType dtype, int rank) {
    return Random.randn(new Generator(1000 + rank), DType.FLOAT32, ELEMENTS).to(dtype);
  }

  private static double error(double[] got, double[] exact) {
    double off = 0;
    double all = 0;
    for (int i = 0; i < exact.length; i++) {
      off += (got[i] - exact[i]) * (got[i] - exact[i]);
      all += exact[i] * exact[i];
    }
    return Math.sqrt(off / all);
  }

  /** Prints rows for 2 to 64 ranks. */
  public static void run(Rows rows) {
    for (DType dtype : new DType[] {DType.BFLOAT16, DType.FLOAT16}) {
      for (int ranks = 2; ranks <= 64; ranks *= 2) {
        double[] errors = of(dtype, ranks);
        rows.addValue(
            "reduction_error",
            errors[0] * 1e6,
            "ppm",
            "dtype",
            dtype.label(),
            "ranks",
            ranks,
            "sum",
            "host backend");
        rows.addValue(
            "reduction_error",
            errors[1] * 1e6,
            "ppm",
            "dtype",
            dtype.label(),
            "ranks",
            ranks,
            "sum",
            "chain");
      }
    }
  }
}
