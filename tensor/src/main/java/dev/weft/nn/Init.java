package dev.weft.nn;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Random;

/** First values of parameters; what is made here belongs to no scope. */
final class Init {
  private Init() {}

  /** float32, uniform between -bound and bound. */
  static Tensor uniform(Generator generator, double bound, long... shape) {
    return DeferredInit.tensor(
        DType.FLOAT32, generator, (t, g) -> Random.uniform(t, -bound, bound, g), shape);
  }

  /** float32, standard normal. */
  static Tensor normal(Generator generator, long... shape) {
    return DeferredInit.tensor(
        DType.FLOAT32, generator, (t, g) -> Random.normal(t, 0, 1, g), shape);
  }

  /** float32, one value. */
  static Tensor full(double value, long... shape) {
    return DeferredInit.tensor(
        DType.FLOAT32, new Generator(0), (t, g) -> InPlace.fill(t, value), shape);
  }
}
