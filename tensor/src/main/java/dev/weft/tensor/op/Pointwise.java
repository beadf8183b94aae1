package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ArithmeticLoops;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.cpu.MoreLoops;
import dev.weft.tensor.cuda.CudaElementwise;
import org.jspecify.annotations.Nullable;

/**
 * Arithmetic of two tensors, or a tensor and a number, with broadcasting and dtype promotion
 * ({@link Promotion}); division never happens in integers. Any thread.
 *
 * <p>An operator with a number is an operator of its own with {@code _scalar} in its name; its
 * attribute 0 is the number, whose category (integer or not) counts for promotion.
 */
public final class Pointwise {
  private Pointwise() {}

  static Op binary(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(Check.broadcast(name, in), Promotion.of(in)),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(resultTyped(name));
  }

  static Op floating(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) ->
                TensorSpec.one(Check.broadcast(name, in), Promotion.floating(Promotion.of(in))),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(resultTyped(name));
  }

  static Op scalar(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(in[0].shape(), Promotion.of(number(name, a), in)),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(resultTyped(name));
  }

  static Op floatingScalar(String name, Loops loops) {
    return Op.function(
            name,
            (in, a) ->
                TensorSpec.one(
                    in[0].shape(), Promotion.floating(Promotion.of(number(name, a), in))),
            (in, out, a) -> Elementwise.run(loops, out[0].dtype(), in, out[0], a))
        .cuda(resultTyped(name));
  }

  /** The CUDA kernel of an elementwise operator that is computed in its result's dtype. */
  static Kernel resultTyped(String name) {
    CudaElementwise cuda = CudaElementwise.of(name);
    return (in, out, a) -> cuda.run(out[0].dtype(), in, out[0], a);
  }

  /** The same for one computed in its first input's dtype. */
  static Kernel inputTyped(String name) {
    CudaElementwise cuda = CudaElementwise.of(name);
    return (in, out, a) -> cuda.run(in[0].dtype(), in, out[0], a);
  }

  static Number number(String op, Attrs a) {
    if (a.size() == 0 || !(a.get(0) instanceof Number n)) {
      throw Check.bad(op, "value is missing; expected a number");
    }
    return n;
  }

  private static final Op ADD =
      binary("add", ArithmeticLoops.ADD)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Grads.reduce(ctx, 0, g) : null,
                        ctx.needs(1) ? Grads.reduce(ctx, 1, scaled(g, ctx.attrs(), 1)) : null
                      }));

  private static final Op SUB =
      binary("sub", ArithmeticLoops.SUB)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Grads.reduce(ctx, 0, g) : null,
                        ctx.needs(1) ? Grads.reduce(ctx, 1, scaled(g, ctx.attrs(), -1)) : null
                      }));

  private static final Op MUL =
      binary("mul", ArithmeticLoops.MUL)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Grads.reduce(ctx, 0, mul(g, ctx.input(1))) : null,
                        ctx.needs(1) ? Grads.reduce(ctx, 1, mul(g, ctx.input(0))) : null
                      }));

  private static final Op DIV =
      floating("div", ArithmeticLoops.DIV)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor ga = div(g, ctx.input(1));
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, ga) : null,
                      ctx.needs(1)
                          ? Grads.reduce(
                              ctx, 1, Unary.neg(mul(ga, div(ctx.input(0), ctx.input(1)))))
                          : null
                    };
                  }));

  private static final Op POW =
      binary("pow", MoreLoops.POW)
          .gradient(
              Op.Saves.BOTH,
              Grads.of(
                  (ctx, g) -> {
                    Tensor x = ctx.input(0);
                    Tensor y = ctx.input(1);
                    @Nullable Tensor gx = null;
                    @Nullable Tensor gy = null;
                    if (ctx.needs(0)) {
                      gx = Grads.reduce(ctx, 0, mul(g, mul(y, pow(x, sub(y, 1)))));
                    }
                    if (ctx.needs(1)) {
                      // 0^y has slope 0 for y > 0, where y = ln 0 * 0 would be NaN.
                      Tensor slope = mul(ctx.output(0), Unary.log(x));
                      Tensor flat = Compare.logicalAnd(Compare.eq(x, 0), Compare.ge(y, 0));
                      gy = Grads.reduce(ctx, 1, mul(g, Compare.maskedFill(slope, flat, 0)));
                    }
                    return new @Nullable Tensor[] {gx, gy};
                  }));

  private static final Op MAXIMUM =
      binary("maximum", MoreLoops.MAXIMUM)
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> extremum(ctx, g, true)));

  private static final Op MINIMUM =
      binary("minimum", MoreLoops.MINIMUM)
          .gradient(Op.Saves.INPUTS, Grads.of((ctx, g) -> extremum(ctx, g, false)));

  private static final Op ADD_SCALAR =
      scalar("add_scalar", ArithmeticLoops.ADD_SCALAR)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op SUB_SCALAR =
      scalar("sub_scalar", ArithmeticLoops.SUB_SCALAR)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op RSUB_SCALAR =
      scalar("rsub_scalar", ArithmeticLoops.RSUB_SCALAR)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Unary.neg(g)));

  private static final Op MUL_SCALAR =
      scalar("mul_scalar", ArithmeticLoops.MUL_SCALAR)
          .gradient(
              Op.Saves.NOTHING, Grads.unary((ctx, g) -> mul(g, number("mul_scalar", ctx.attrs()))));

  private static final Op DIV_SCALAR =
      floatingScalar("div_scalar", ArithmeticLoops.DIV_SCALAR)
          .gradient(
              Op.Saves.NOTHING, Grads.unary((ctx, g) -> div(g, number("div_scalar", ctx.attrs()))));

  private static final Op RDIV_SCALAR =
      floatingScalar("rdiv_scalar", ArithmeticLoops.RDIV_SCALAR)
          .gradient(
              Op.Saves.BOTH,
              Grads.unary((ctx, g) -> mul(g, Unary.neg(div(ctx.output(0), ctx.input(0))))));

  private static final Op POW_SCALAR =
      Op.function(
              "pow_scalar",
              (in, a) -> {
                Number e = number("pow_scalar", a);
                DType dtype = Promotion.of(e, in);
                if (!dtype.isFloatingPoint() && e.longValue() < 0) {
                  throw Check.bad(
                      "pow_scalar", "value " + e + " is negative; integers have no such power");
                }
                return TensorSpec.one(in[0].shape(), dtype);
              },
              (in, out, a) -> Elementwise.run(MoreLoops.POW_SCALAR, out[0].dtype(), in, out[0], a))
          .cuda(resultTyped("pow_scalar"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary(
                  (ctx, g) -> {
                    Number e = number("pow_scalar", ctx.attrs());
                    double v = e.doubleValue();
                    return v == 0
                        ? Creation.zerosLike(g)
                        : mul(g, mul(pow(ctx.input(0), v - 1), e));
                  }));

  private static final Op ADDCMUL =
      binary("addcmul", MoreLoops.ADDCMUL)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor scaled = scaled(g, ctx.attrs(), 1);
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, g) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, mul(scaled, ctx.input(2))) : null,
                      ctx.needs(2) ? Grads.reduce(ctx, 2, mul(scaled, ctx.input(1))) : null
                    };
                  }));

  private static final Op ADDCDIV =
      floating("addcdiv", MoreLoops.ADDCDIV)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor gy = div(scaled(g, ctx.attrs(), 1), ctx.input(2));
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, g) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, gy) : null,
                      ctx.needs(2)
                          ? Grads.reduce(
                              ctx, 2, Unary.neg(mul(gy, div(ctx.input(1), ctx.input(2)))))
                          : null
                    };
                  }));

  private static final Op LERP =
      binary("lerp", MoreLoops.LERP)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor w = ctx.input(2);
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, mul(g, rsub(w, 1))) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, mul(g, w)) : null,
                      ctx.needs(2)
                          ? Grads.reduce(ctx, 2, mul(g, sub(ctx.input(1), ctx.input(0))))
                          : null
                    };
                  }));

  private static final Op LERP_SCALAR =
      binary("lerp_scalar", MoreLoops.LERP)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) -> {
                    double w = ctx.attrs().doubleAt(0);
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Grads.reduce(ctx, 0, mul(g, 1 - w)) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, mul(g, w)) : null
                    };
                  }));

  /** g times attribute 0 (1 where absent) times a sign. */
  private static Tensor scaled(Tensor g, Attrs attrs, int sign) {
    if (attrs.isNull(0)) {
      return sign == 1 ? g : Unary.neg(g);
    }
    return mul(g, sign * attrs.doubleAt(0));
  }

  /** The gradient goes to the winner, half to each where they tie. */
  private static @Nullable Tensor[] extremum(
      dev.weft.tensor.autograd.Backward.Context ctx, Tensor g, boolean max) {
    Tensor a = ctx.input(0);
    Tensor b = ctx.input(1);
    Tensor half = Compare.maskedFill(g, Compare.ne(a, b), 0);
    half = mul(half, 0.5);
    Tensor aWins = max ? Compare.gt(a, b) : Compare.lt(a, b);
    Tensor bWins = max ? Compare.gt(b, a) : Compare.lt(b, a);
    return new @Nullable Tensor[] {
      ctx.needs(0)
          ? Grads.reduce(ctx, 0, add(half, Compare.maskedFill(g, Compare.logicalNot(aWins), 0)))
          : null,
      ctx.needs(1)
          ? Grads.reduce(ctx, 1, add(half, Compare.maskedFill(g, Compare.logicalNot(bWins), 0)))
          : null
    };
  }

  /** a + b. */
  public static Tensor add(Tensor a, Tensor b) {
    return Dispatcher.call(ADD, Attrs.NONE, a, b);
  }

  /** a + alpha b. */
  public static Tensor add(Tensor a, Tensor b, Number alpha) {
    return Dispatcher.call(ADD, alpha("add", alpha, a, b), a, b);
  }

  /** a + value. */
  public static Tensor add(Tensor a, Number value) {
    return Dispatcher.call(ADD_SCALAR, Attrs.of(value), a);
  }

  /** a - b. */
  public static Tensor sub(Tensor a, Tensor b) {
    notBool("sub", a, b);
    return Dispatcher.call(SUB, Attrs.NONE, a, b);
  }

  /** a - alpha b. */
  public static Tensor sub(Tensor a, Tensor b, Number alpha) {
    notBool("sub", a, b);
    return Dispatcher.call(SUB, alpha("sub", alpha, a, b), a, b);
  }

  /** a - value. */
  public static Tensor sub(Tensor a, Number value) {
    notBool("sub_scalar", a);
    return Dispatcher.call(SUB_SCALAR, Attrs.of(value), a);
  }

  /** value - a. */
  public static Tensor rsub(Tensor a, Number value) {
    notBool("rsub_scalar", a);
    return Dispatcher.call(RSUB_SCALAR, Attrs.of(value), a);
  }

  /** a b. */
  public static Tensor mul(Tensor a, Tensor b) {
    return Dispatcher.call(MUL, Attrs.NONE, a, b);
  }

  /** a value. */
  public static Tensor mul(Tensor a, Number value) {
    return Dispatcher.call(MUL_SCALAR, Attrs.of(value), a);
  }

  /** a / b; integers give float32. */
  public static Tensor div(Tensor a, Tensor b) {
    return Dispatcher.call(DIV, Attrs.NONE, a, b);
  }

  /** a / value; integers give float32. */
  public static Tensor div(Tensor a, Number value) {
    return Dispatcher.call(DIV_SCALAR, Attrs.of(value), a);
  }

  /** value / a; integers give float32. */
  public static Tensor rdiv(Tensor a, Number value) {
    return Dispatcher.call(RDIV_SCALAR, Attrs.of(value), a);
  }

  /** a to the power b. */
  public static Tensor pow(Tensor a, Tensor b) {
    return Dispatcher.call(POW, Attrs.NONE, a, b);
  }

  /** a to a fixed power. */
  public static Tensor pow(Tensor a, Number exponent) {
    return Dispatcher.call(POW_SCALAR, Attrs.of(exponent), a);
  }

  /** The larger of both, NaN where one is. */
  public static Tensor maximum(Tensor a, Tensor b) {
    return Dispatcher.call(MAXIMUM, Attrs.NONE, a, b);
  }

  /** The smaller of both, NaN where one is. */
  public static Tensor minimum(Tensor a, Tensor b) {
    return Dispatcher.call(MINIMUM, Attrs.NONE, a, b);
  }

  /** a + value b c. */
  public static Tensor addcmul(Tensor a, Tensor b, Tensor c, Number value) {
    return Dispatcher.call(ADDCMUL, alpha("addcmul", value, a, b, c), a, b, c);
  }

  /** a + value b / c. */
  public static Tensor addcdiv(Tensor a, Tensor b, Tensor c, Number value) {
    return Dispatcher.call(ADDCDIV, alpha("addcdiv", value, a, b, c), a, b, c);
  }

  /** a + weight (b - a). */
  public static Tensor lerp(Tensor a, Tensor b, Tensor weight) {
    Check.floating("lerp", "input", a);
    Check.sameDType("lerp", a, b, weight);
    return Dispatcher.call(LERP, Attrs.NONE, a, b, weight);
  }

  /** a + weight (b - a). */
  public static Tensor lerp(Tensor a, Tensor b, double weight) {
    Check.floating("lerp", "input", a);
    Check.sameDType("lerp", a, b);
    return Dispatcher.call(LERP_SCALAR, Attrs.of(weight), a, b);
  }

  /** a += b; see {@link InPlace#add}. */
  public static Tensor addInPlace(Tensor a, Tensor b) {
    return InPlace.add(a, b);
  }

  static Attrs alpha(String op, Number alpha, Tensor... tensors) {
    if (Promotion.isFloating(alpha) && !Promotion.of(tensors).isFloatingPoint()) {
      throw Check.bad(op, "alpha " + alpha + " must be an integer for integer tensors");
    }
    return alpha.doubleValue() == 1 ? Attrs.NONE : Attrs.of(alpha);
  }

  static void notBool(String op, Tensor... tensors) {
    for (Tensor t : tensors) {
      if (t.dtype() == DType.BOOL) {
        throw Check.bad(op, "bool tensors have no difference; use logicalXor or logicalNot");
      }
    }
  }
}
