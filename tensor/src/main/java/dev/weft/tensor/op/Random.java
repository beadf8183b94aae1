package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.RandomKernels;
import dev.weft.tensor.cuda.CudaRandom;
import org.jspecify.annotations.Nullable;

/**
 * Random values from a {@link Generator}. Any thread, each with its own generator.
 *
 * <p>The operators' attributes are seed, offset and two parameters; attributes 4 and 5, where
 * present, say that the tensor is a block of a larger one (its shape, the block's start), whose
 * values then are those that the whole would have had.
 */
public final class Random {
  private Random() {}

  private interface Fill {
    void run(StridedTensor out, RandomKernels.Source source, Attrs a);
  }

  private static Op fill(String name, Fill fill, Fill cuda) {
    return Op.inPlace(
            name,
            (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
            (in, out, a) -> fill.run(out[0], source(a, 4), a))
        .cuda((in, out, a) -> cuda.run(out[0], source(a, 4), a))
        .notDifferentiable();
  }

  private static RandomKernels.Source source(Attrs a, int window) {
    return new RandomKernels.Source(
        a.longAt(0),
        a.longAt(1),
        a.isNull(window) ? null : a.longsAt(window),
        a.isNull(window) ? null : a.longsAt(window + 1));
  }

  private static final Op UNIFORM =
      fill(
          "uniform_",
          (t, s, a) -> RandomKernels.uniform(t, s, a.doubleAt(2), a.doubleAt(3)),
          (t, s, a) -> CudaRandom.uniform(t, s, a.doubleAt(2), a.doubleAt(3)));
  private static final Op NORMAL =
      fill(
          "normal_",
          (t, s, a) -> RandomKernels.normal(t, s, a.doubleAt(2), a.doubleAt(3)),
          (t, s, a) -> CudaRandom.normal(t, s, a.doubleAt(2), a.doubleAt(3)));
  private static final Op INTEGERS =
      fill(
          "random_",
          (t, s, a) -> RandomKernels.integers(t, s, a.longAt(2), a.longAt(3)),
          (t, s, a) -> CudaRandom.integers(t, s, a.longAt(2), a.longAt(3)));

  private static final Op DROPOUT =
      Op.function(
              "dropout",
              (in, a) -> {
                Check.floating("dropout", "input", in[0]);
                double p = a.doubleAt(2);
                if (!(p >= 0 && p <= 1)) {
                  throw Check.bad("dropout", "p " + p + "; expected 0 to 1");
                }
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> RandomKernels.dropout(in[0], out[0], source(a, 3), a.doubleAt(2)))
          .cuda((in, out, a) -> CudaRandom.dropout(in[0], out[0], source(a, 3), a.doubleAt(2)))
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary((ctx, g) -> Dispatcher.call(dropoutOp(), ctx.attrs(), g)));

  private static Op dropoutOp() {
    return DROPOUT;
  }

  /**
   * Fills a floating-point tensor with uniform values in [low, high).
   *
   * @param generator null for the thread's own, or of a distributed tensor the rank's
   */
  public static Tensor uniform(Tensor t, double low, double high, @Nullable Generator generator) {
    Check.floating("uniform_", "input", t);
    return call(UNIFORM, t, low, high, generator);
  }

  /**
   * Fills a floating-point tensor with normal values.
   *
   * @param generator null for the thread's own, or of a distributed tensor the rank's
   */
  public static Tensor normal(Tensor t, double mean, double std, @Nullable Generator generator) {
    Check.floating("normal_", "input", t);
    return call(NORMAL, t, mean, std, generator);
  }

  /**
   * Fills a tensor with integers in [low, high).
   *
   * @param generator null for the thread's own, or of a distributed tensor the rank's
   */
  public static Tensor integers(Tensor t, long low, long high, @Nullable Generator generator) {
    if (high <= low) {
      throw Check.bad("random_", "high " + high + "; expected more than low " + low);
    }
    return call(INTEGERS, t, low, high, generator);
  }

  private static Tensor call(Op op, Tensor t, Number a, Number b, @Nullable Generator generator) {
    Generator g = orDefault(generator, t);
    return Dispatcher.call(op, Attrs.of(g.seed(), g.take(t.numel()), a, b), t);
  }

  private static Generator orDefault(@Nullable Generator generator, Tensor t) {
    if (generator != null) {
      return generator;
    }
    TensorKind kind = t.kind();
    return kind == null ? Generator.current() : kind.generator();
  }

  /** Uniform values in [0, 1) on the CPU. */
  public static StridedTensor rand(Generator generator, DType dtype, long... shape) {
    return (StridedTensor) uniform(Tensors.empty(dtype, shape), 0, 1, generator);
  }

  /** Standard normal values on the CPU. */
  public static StridedTensor randn(Generator generator, DType dtype, long... shape) {
    return (StridedTensor) normal(Tensors.empty(dtype, shape), 0, 1, generator);
  }

  /** int64 values in [low, high) on the CPU. */
  public static StridedTensor randint(Generator generator, long low, long high, long... shape) {
    if (high <= low) {
      throw Check.bad("randint", "high " + high + "; expected more than low " + low);
    }
    return (StridedTensor) integers(Tensors.empty(DType.INT64, shape), low, high, generator);
  }

  /**
   * Zeros each element with probability {@code p} and divides the rest by 1 - p; the tensor itself
   * where not in training or p is 0.
   *
   * @param generator null for the thread's own, or of a distributed tensor the rank's
   */
  public static Tensor dropout(
      Tensor x, double p, boolean training, @Nullable Generator generator) {
    if (!training || p == 0) {
      return x;
    }
    Generator g = orDefault(generator, x);
    return Dispatcher.call(DROPOUT, Attrs.of(g.seed(), g.take(x.numel()), p), x);
  }
}
