package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Random;

/** Inputs of the tests that compare GPU and CPU. */
final class Samples {
  static final DType[] FLOATS = {DType.FLOAT32, DType.BFLOAT16, DType.FLOAT16, DType.FLOAT64};

  private Samples() {}

  /** Normally distributed numbers on the CPU. */
  static Tensor normal(long seed, DType dtype, long... shape) {
    return Casts.to(Random.randn(new Generator(seed), DType.FLOAT32, shape), dtype);
  }

  /** How far results of a dtype may be apart, relative to max(1, value). */
  static double tolerance(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> 1e-12;
      case FLOAT32 -> 1e-5;
      case FLOAT16 -> 2e-3;
      default -> 1.6e-2;
    };
  }

  /** Whole numbers from 0 to below a bound, the same at each call. */
  static Tensor indices(int bound, int count) {
    long[] v = new long[count];
    for (int i = 0; i < count; i++) {
      v[i] = (i * 7919L + i / 3) % bound;
    }
    return Tensor.of(v, count);
  }
}
