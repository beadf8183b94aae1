package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.CompareLoops;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.cpu.MoreLoops;
import dev.weft.tensor.cpu.UnaryLoops;
import org.jspecify.annotations.Nullable;

/**
 * Functions of one tensor, element by element. Where no integer result exists, integers give
 * float32. Any thread.
 */
public final class Unary {
  private Unary() {}

  /** Keeps the dtype. */
  private static Op same(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(Pointwise.resultTyped(name));
  }

  /** Keeps the dtype; bool is refused. */
  static Op numeric(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> {
              Check.numbers(name, "input", in[0]);
              return TensorSpec.one(in[0].shape(), in[0].dtype());
            },
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(Pointwise.resultTyped(name));
  }

  /** Integers give float32. */
  static Op floating(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(in[0].shape(), Promotion.floating(in[0].dtype())),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(Pointwise.resultTyped(name));
  }

  private static final Op NEG =
      numeric("neg", UnaryLoops.NEG).gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> neg(g)));

  private static final Op ABS =
      numeric("abs", UnaryLoops.ABS)
          .gradient(Op.Saves.INPUTS, Grads.unary((ctx, g) -> Pointwise.mul(g, sign(ctx.input(0)))));

  private static final Op SIGN =
      same("sign", UnaryLoops.SIGN)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op FLOOR =
      numeric("floor", UnaryLoops.FLOOR)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op CEIL =
      numeric("ceil", UnaryLoops.CEIL)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op ROUND =
      numeric("round", UnaryLoops.ROUND)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op SQUARE =
      Op.function(
              "square",
              (in, a) ->
                  TensorSpec.one(
                      in[0].shape(), in[0].dtype() == DType.BOOL ? DType.INT64 : in[0].dtype()),
              (in, out, a) -> Elementwise.run(UnaryLoops.SQUARE, out[0].dtype(), in, out[0], a))
          .cuda(Pointwise.resultTyped("square"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary((ctx, g) -> Pointwise.mul(g, Pointwise.mul(ctx.input(0), 2))));

  private static final Op EXP =
      floating("exp", UnaryLoops.EXP)
          .gradient(Op.Saves.OUTPUTS, Grads.unary((ctx, g) -> Pointwise.mul(g, ctx.output(0))));

  private static final Op LOG =
      floating("log", UnaryLoops.LOG)
          .gradient(Op.Saves.INPUTS, Grads.unary((ctx, g) -> Pointwise.div(g, ctx.input(0))));

  private static final Op LOG1P =
      floating("log1p", UnaryLoops.LOG1P)
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary((ctx, g) -> Pointwise.div(g, Pointwise.add(ctx.input(0), 1))));

  private static final Op SQRT =
      floating("sqrt", UnaryLoops.SQRT)
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary((ctx, g) -> Pointwise.div(g, Pointwise.mul(ctx.output(0), 2))));

  private static final Op RSQRT =
      floating("rsqrt", UnaryLoops.RSQRT)
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Pointwise.mul(Pointwise.mul(g, -0.5), Pointwise.pow(ctx.output(0), 3.0))));

  private static final Op RECIPROCAL =
      floating("reciprocal", UnaryLoops.RECIPROCAL)
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary((ctx, g) -> Pointwise.mul(neg(g), square(ctx.output(0)))));

  private static final Op SIN =
      floating("sin", UnaryLoops.SIN)
          .gradient(Op.Saves.INPUTS, Grads.unary((ctx, g) -> Pointwise.mul(g, cos(ctx.input(0)))));

  private static final Op COS =
      floating("cos", UnaryLoops.COS)
          .gradient(
              Op.Saves.INPUTS, Grads.unary((ctx, g) -> Pointwise.mul(neg(g), sin(ctx.input(0)))));

  private static final Op ERF =
      floating("erf", UnaryLoops.ERF)
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) ->
                      Pointwise.mul(
                          Pointwise.mul(g, 2 / Math.sqrt(Math.PI)),
                          exp(neg(square(ctx.input(0)))))));

  private static final Op CLAMP =
      Op.function(
              "clamp",
              (in, a) -> {
                return TensorSpec.one(in[0].shape(), clampDType("clamp", in[0], a));
              },
              (in, out, a) -> Elementwise.run(MoreLoops.CLAMP, out[0].dtype(), in, out[0], a))
          .cuda(Pointwise.resultTyped("clamp"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> {
                    Tensor x = ctx.input(0);
                    Tensor result = g;
                    if (!ctx.attrs().isNull(0)) {
                      result =
                          Compare.maskedFill(
                              result, Compare.lt(x, ctx.attrs().get(0, Number.class)), 0);
                    }
                    if (!ctx.attrs().isNull(1)) {
                      result =
                          Compare.maskedFill(
                              result, Compare.gt(x, ctx.attrs().get(1, Number.class)), 0);
                    }
                    return result;
                  }));

  private static final Op IS_NAN =
      Op.function(
              "isnan",
              (in, a) -> TensorSpec.one(in[0].shape(), DType.BOOL),
              (in, out, a) -> Elementwise.run(CompareLoops.IS_NAN, in[0].dtype(), in, out[0], a))
          .cuda(Pointwise.inputTyped("isnan"))
          .notDifferentiable();

  private static final Op ATAN2 =
      Pointwise.floating("atan2", UnaryLoops.ATAN2)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor y = ctx.input(0);
                    Tensor x = ctx.input(1);
                    Tensor scaled = Pointwise.div(g, Pointwise.add(square(x), square(y)));
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, Pointwise.mul(scaled, x)) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, Pointwise.mul(neg(scaled), y)) : null
                    };
                  }));

  /** The dtype of a tensor together with its bounds. */
  static DType clampDType(String op, Tensor x, Attrs a) {
    if (a.isNull(0) && a.isNull(1)) {
      throw Check.bad(op, "min and max are both absent; expected at least one");
    }
    Number low = a.isNull(0) ? a.get(1, Number.class) : a.get(0, Number.class);
    Number high = a.isNull(1) ? low : a.get(1, Number.class);
    return Promotion.of(Promotion.isFloating(low) ? low : high, x);
  }

  /** -x. */
  public static Tensor neg(Tensor x) {
    return Dispatcher.call(NEG, Attrs.NONE, x);
  }

  /** |x|. */
  public static Tensor abs(Tensor x) {
    return Dispatcher.call(ABS, Attrs.NONE, x);
  }

  /** -1, 0 or 1. */
  public static Tensor sign(Tensor x) {
    return Dispatcher.call(SIGN, Attrs.NONE, x);
  }

  /** The largest integer not above x. */
  public static Tensor floor(Tensor x) {
    return Dispatcher.call(FLOOR, Attrs.NONE, x);
  }

  /** The smallest integer not below x. */
  public static Tensor ceil(Tensor x) {
    return Dispatcher.call(CEIL, Attrs.NONE, x);
  }

  /** The nearest integer, the even one of two. */
  public static Tensor round(Tensor x) {
    return Dispatcher.call(ROUND, Attrs.NONE, x);
  }

  /** x squared. */
  public static Tensor square(Tensor x) {
    return Dispatcher.call(SQUARE, Attrs.NONE, x);
  }

  /** e^x. */
  public static Tensor exp(Tensor x) {
    return Dispatcher.call(EXP, Attrs.NONE, x);
  }

  /** ln x. */
  public static Tensor log(Tensor x) {
    return Dispatcher.call(LOG, Attrs.NONE, x);
  }

  /** ln(1 + x). */
  public static Tensor log1p(Tensor x) {
    return Dispatcher.call(LOG1P, Attrs.NONE, x);
  }

  /** The square root. */
  public static Tensor sqrt(Tensor x) {
    return Dispatcher.call(SQRT, Attrs.NONE, x);
  }

  /** 1 / sqrt(x). */
  public static Tensor rsqrt(Tensor x) {
    return Dispatcher.call(RSQRT, Attrs.NONE, x);
  }

  /** 1 / x. */
  public static Tensor reciprocal(Tensor x) {
    return Dispatcher.call(RECIPROCAL, Attrs.NONE, x);
  }

  /** sin x, in radians. */
  public static Tensor sin(Tensor x) {
    return Dispatcher.call(SIN, Attrs.NONE, x);
  }

  /** cos x, in radians. */
  public static Tensor cos(Tensor x) {
    return Dispatcher.call(COS, Attrs.NONE, x);
  }

  /** The error function. */
  public static Tensor erf(Tensor x) {
    return Dispatcher.call(ERF, Attrs.NONE, x);
  }

  /** The angle of the point (x, y), in radians. */
  public static Tensor atan2(Tensor y, Tensor x) {
    return Dispatcher.call(ATAN2, Attrs.NONE, y, x);
  }

  /** x held between two bounds, of which one may be null. */
  public static Tensor clamp(Tensor x, @Nullable Number min, @Nullable Number max) {
    return Dispatcher.call(CLAMP, Attrs.of(min, max), x);
  }

  /** True where x is not a number. */
  public static Tensor isNan(Tensor x) {
    return Dispatcher.call(IS_NAN, Attrs.NONE, x);
  }
}
