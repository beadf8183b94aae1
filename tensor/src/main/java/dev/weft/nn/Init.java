package dev.weft.nn;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Random;

/** First values of parameters; what is made here belongs to no scope. */
final class Init {
  private Init() {}

  /** float32, uniform between -bound and bound. */
  static Tensor uniform(Generator generator, double bound, long... shape) {
    return TensorScope.outside(
        () -> {
          Tensor t = Creation.zeros(DType.FLOAT32, shape);
          return Random.uniform(t, -bound, bound, generator);
        });
  }

  /** float32, standard normal. */
  static Tensor normal(Generator generator, long... shape) {
    return TensorScope.outside(() -> Random.randn(generator, DType.FLOAT32, shape));
  }

  /** float32, one value. */
  static Tensor full(double value, long... shape) {
    return TensorScope.outside(
        () -> Creation.full(value, DType.FLOAT32, dev.weft.tensor.Device.CPU, shape));
  }
}
