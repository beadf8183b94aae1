package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.ActivationLoops;
import dev.weft.tensor.cpu.ArithmeticLoops;
import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.FillKernels;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.cpu.MoreLoops;
import dev.weft.tensor.cuda.CudaElementwise;
import dev.weft.tensor.cuda.CudaFills;
import dev.weft.tensor.cuda.CudaMoves;
import org.jspecify.annotations.Nullable;

/**
 * Operators that write their first argument and return it. The others broadcast to its shape; a
 * result of a higher category than the target's dtype is refused, a lower one converted. The target
 * belongs to the calling thread.
 */
public final class InPlace {
  private InPlace() {}

  private static Op of(String name, Loops loops, boolean floating) {
    CudaElementwise cuda = CudaElementwise.of(name);
    return Op.inPlace(
            name,
            (in, a) -> {
              DType result = Promotion.of(in);
              Check.castable(name, floating ? Promotion.floating(result) : result, in[0].dtype());
              return TensorSpec.one(Check.broadcast(name, in), in[0].dtype());
            },
            (in, out, a) -> Elementwise.run(loops, together(floating, in), in, out[0], a))
        .cuda((in, out, a) -> cuda.run(together(floating, in), in, out[0], a));
  }

  private static DType together(boolean floating, Tensor[] in) {
    return floating ? Promotion.floating(Promotion.of(in)) : Promotion.of(in);
  }

  private static Op scalar(String name, Loops loops, boolean floating) {
    return Op.inPlace(
            name,
            (in, a) -> {
              DType result = Promotion.of(Pointwise.number(name, a), in);
              Check.castable(name, floating ? Promotion.floating(result) : result, in[0].dtype());
              return TensorSpec.one(in[0].shape(), in[0].dtype());
            },
            (in, out, a) -> Elementwise.run(loops, in[0].dtype(), in, out[0], a))
        .cuda(Pointwise.inputTyped(name));
  }

  private static final Op ADD =
      of("add_", ArithmeticLoops.ADD, false)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        g,
                        ctx.needs(1)
                            ? Grads.reduce(
                                ctx,
                                1,
                                ctx.attrs().isNull(0)
                                    ? g
                                    : Pointwise.mul(g, ctx.attrs().get(0, Number.class)))
                            : null
                      }));

  private static final Op SUB =
      of("sub_", ArithmeticLoops.SUB, false)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        g,
                        ctx.needs(1)
                            ? Grads.reduce(
                                ctx,
                                1,
                                ctx.attrs().isNull(0)
                                    ? Unary.neg(g)
                                    : Pointwise.mul(g, -ctx.attrs().doubleAt(0)))
                            : null
                      }));

  private static final Op MUL =
      of("mul_", ArithmeticLoops.MUL, false)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Pointwise.mul(g, ctx.input(1)) : null,
                        ctx.needs(1) ? Grads.reduce(ctx, 1, Pointwise.mul(g, ctx.input(0))) : null
                      }));

  private static final Op DIV =
      of("div_", ArithmeticLoops.DIV, true)
          .gradient(
              Op.Saves.BOTH,
              Grads.of(
                  (ctx, g) -> {
                    Tensor ga = Pointwise.div(g, ctx.input(1));
                    return new @Nullable Tensor[] {
                      ga,
                      ctx.needs(1)
                          ? Grads.reduce(ctx, 1, Unary.neg(Pointwise.mul(ga, ctx.output(0))))
                          : null
                    };
                  }));

  private static final Op ADD_SCALAR =
      scalar("add_scalar_", ArithmeticLoops.ADD_SCALAR, false)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op SUB_SCALAR =
      scalar("sub_scalar_", ArithmeticLoops.SUB_SCALAR, false)
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  private static final Op MUL_SCALAR =
      scalar("mul_scalar_", ArithmeticLoops.MUL_SCALAR, false)
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary((ctx, g) -> Pointwise.mul(g, ctx.attrs().get(0, Number.class))));

  private static final Op DIV_SCALAR =
      scalar("div_scalar_", ArithmeticLoops.DIV_SCALAR, true)
          .gradient(
              Op.Saves.NOTHING,
              Grads.unary((ctx, g) -> Pointwise.div(g, ctx.attrs().get(0, Number.class))));

  private static final Op ADDCMUL =
      of("addcmul_", MoreLoops.ADDCMUL, false)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor s =
                        ctx.attrs().isNull(0)
                            ? g
                            : Pointwise.mul(g, ctx.attrs().get(0, Number.class));
                    return new @Nullable Tensor[] {
                      g,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, Pointwise.mul(s, ctx.input(2))) : null,
                      ctx.needs(2) ? Grads.reduce(ctx, 2, Pointwise.mul(s, ctx.input(1))) : null
                    };
                  }));

  private static final Op ADDCDIV =
      of("addcdiv_", MoreLoops.ADDCDIV, true)
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor s =
                        ctx.attrs().isNull(0)
                            ? g
                            : Pointwise.mul(g, ctx.attrs().get(0, Number.class));
                    Tensor gy = Pointwise.div(s, ctx.input(2));
                    return new @Nullable Tensor[] {
                      g,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, gy) : null,
                      ctx.needs(2)
                          ? Grads.reduce(
                              ctx,
                              2,
                              Unary.neg(
                                  Pointwise.mul(gy, Pointwise.div(ctx.input(1), ctx.input(2)))))
                          : null
                    };
                  }));

  private static final Op LERP_SCALAR =
      of("lerp_scalar_", MoreLoops.LERP, true)
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) -> {
                    double w = ctx.attrs().doubleAt(0);
                    return new @Nullable Tensor[] {
                      ctx.needs(0) ? Pointwise.mul(g, 1 - w) : null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, Pointwise.mul(g, w)) : null
                    };
                  }));

  private static final Op RELU =
      Op.inPlace(
              "relu_",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> Elementwise.run(ActivationLoops.RELU, in[0].dtype(), in, out[0], a))
          .cuda(Pointwise.inputTyped("relu_"))
          .gradient(
              Op.Saves.OUTPUTS,
              Grads.unary((ctx, g) -> Activations.reluBackward(g, ctx.output(0))));

  private static final Op CLAMP =
      Op.inPlace(
              "clamp_",
              (in, a) -> {
                Check.castable("clamp_", Unary.clampDType("clamp_", in[0], a), in[0].dtype());
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> Elementwise.run(MoreLoops.CLAMP, in[0].dtype(), in, out[0], a))
          .cuda(Pointwise.inputTyped("clamp_"))
          .notDifferentiable();

  private static final Op FILL =
      Op.inPlace(
              "fill_",
              (in, a) -> {
                Number unused = Pointwise.number("fill_", a);
                return TensorSpec.one(in[0].shape(), in[0].dtype());
              },
              (in, out, a) -> FillKernels.fill(out[0], a.get(0, Number.class)))
          .cuda((in, out, a) -> CudaFills.fill(out[0], a.get(0, Number.class)))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op ZERO =
      Op.inPlace(
              "zero_",
              (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, a) -> FillKernels.fill(out[0], 0))
          .cuda((in, out, a) -> CudaFills.fill(out[0], 0))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> Creation.zerosLike(g)));

  private static final Op COPY =
      Op.inPlace(
              "copy_",
              (in, a) -> TensorSpec.one(Check.broadcast("copy_", in), in[0].dtype()),
              (in, out, a) -> CopyKernels.copy(in[1], out[0]))
          .cuda((in, out, a) -> CudaMoves.copy(in[1], out[0]))
          .gradient(
              Op.Saves.NOTHING,
              Grads.of(
                  (ctx, g) ->
                      new @Nullable Tensor[] {
                        ctx.needs(0) ? Creation.zerosLike(g) : null,
                        ctx.needs(1) ? Grads.reduce(ctx, 1, g) : null
                      }));

  private static final Op MASKED_FILL =
      Op.inPlace(
              "masked_fill_",
              (in, a) -> {
                Compare.checkFill("masked_fill_", in, a);
                return TensorSpec.one(Check.broadcast("masked_fill_", in), in[0].dtype());
              },
              (in, out, a) -> CopyKernels.maskedFill(out[0], in[1], a.get(0, Number.class)))
          .cuda(Pointwise.inputTyped("masked_fill_"))
          .gradient(
              Op.Saves.INPUTS, Grads.unary((ctx, g) -> Compare.maskedFill(g, ctx.input(1), 0)));

  /** a += b. */
  public static Tensor add(Tensor a, Tensor b) {
    return Dispatcher.call(ADD, Attrs.NONE, a, b);
  }

  /** a += alpha b. */
  public static Tensor add(Tensor a, Tensor b, Number alpha) {
    return Dispatcher.call(ADD, Pointwise.alpha("add_", alpha, a, b), a, b);
  }

  /** a += value. */
  public static Tensor add(Tensor a, Number value) {
    return Dispatcher.call(ADD_SCALAR, Attrs.of(value), a);
  }

  /** a -= b. */
  public static Tensor sub(Tensor a, Tensor b) {
    Pointwise.notBool("sub_", a, b);
    return Dispatcher.call(SUB, Attrs.NONE, a, b);
  }

  /** a -= alpha b. */
  public static Tensor sub(Tensor a, Tensor b, Number alpha) {
    Pointwise.notBool("sub_", a, b);
    return Dispatcher.call(SUB, Pointwise.alpha("sub_", alpha, a, b), a, b);
  }

  /** a -= value. */
  public static Tensor sub(Tensor a, Number value) {
    Pointwise.notBool("sub_scalar_", a);
    return Dispatcher.call(SUB_SCALAR, Attrs.of(value), a);
  }

  /** a *= b. */
  public static Tensor mul(Tensor a, Tensor b) {
    return Dispatcher.call(MUL, Attrs.NONE, a, b);
  }

  /** a *= value. */
  public static Tensor mul(Tensor a, Number value) {
    return Dispatcher.call(MUL_SCALAR, Attrs.of(value), a);
  }

  /** a /= b, for floating-point targets. */
  public static Tensor div(Tensor a, Tensor b) {
    return Dispatcher.call(DIV, Attrs.NONE, a, b);
  }

  /** a /= value, for floating-point targets. */
  public static Tensor div(Tensor a, Number value) {
    return Dispatcher.call(DIV_SCALAR, Attrs.of(value), a);
  }

  /** a += value b c. */
  public static Tensor addcmul(Tensor a, Tensor b, Tensor c, Number value) {
    return Dispatcher.call(ADDCMUL, Pointwise.alpha("addcmul_", value, a, b, c), a, b, c);
  }

  /** a += value b / c. */
  public static Tensor addcdiv(Tensor a, Tensor b, Tensor c, Number value) {
    return Dispatcher.call(ADDCDIV, Pointwise.alpha("addcdiv_", value, a, b, c), a, b, c);
  }

  /** a += weight (b - a). */
  public static Tensor lerp(Tensor a, Tensor b, double weight) {
    return Dispatcher.call(LERP_SCALAR, Attrs.of(weight), a, b);
  }

  /** a = max(a, 0). */
  public static Tensor relu(Tensor a) {
    return Dispatcher.call(RELU, Attrs.NONE, a);
  }

  /** Holds a between two bounds, of which one may be null. */
  public static Tensor clamp(Tensor a, @Nullable Number min, @Nullable Number max) {
    return Dispatcher.call(CLAMP, Attrs.of(min, max), a);
  }

  /** Sets all elements to a value. */
  public static Tensor fill(Tensor a, Number value) {
    return Dispatcher.call(FILL, Attrs.of(value), a);
  }

  /** Sets all elements to 0. */
  public static Tensor zero(Tensor a) {
    return Dispatcher.call(ZERO, Attrs.NONE, a);
  }

  /** Copies values, converting the dtype; {@code source} broadcasts. */
  public static Tensor copy(Tensor target, Tensor source) {
    return Dispatcher.call(COPY, Attrs.NONE, target, source);
  }

  /** Sets the elements to a value where the mask is true. */
  public static Tensor maskedFill(Tensor a, Tensor mask, Number value) {
    return Dispatcher.call(MASKED_FILL, Attrs.of(value), a, mask);
  }
}
