package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.CompareLoops;
import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.cpu.MoreLoops;
import dev.weft.tensor.cuda.CudaElementwise;
import org.jspecify.annotations.Nullable;

/** Comparisons and logic, which give bool tensors, and choices by a mask. Any thread. */
public final class Compare {
  private Compare() {}

  private static Op compare(String name, Loops loops) {
    CudaElementwise cuda = CudaElementwise.of(name);
    return Op.function(
            name,
            (in, a) -> TensorSpec.one(Check.broadcast(name, in), DType.BOOL),
            (in, out, a) -> Elementwise.run(loops, Promotion.of(in), in, out[0], a))
        .cuda((in, out, a) -> cuda.run(Promotion.of(in), in, out[0], a))
        .notDifferentiable();
  }

  private static Op scalar(String name, Loops loops) {
    CudaElementwise cuda = CudaElementwise.of(name);
    return Op.function(
            name,
            (in, a) -> {
              Number unused = Pointwise.number(name, a);
              return TensorSpec.one(in[0].shape(), DType.BOOL);
            },
            (in, out, a) ->
                Elementwise.run(loops, Promotion.of(a.get(0, Number.class), in), in, out[0], a))
        .cuda((in, out, a) -> cuda.run(Promotion.of(a.get(0, Number.class), in), in, out[0], a))
        .notDifferentiable();
  }

  private static final Op EQ = compare("eq", CompareLoops.EQ);
  private static final Op NE = compare("ne", CompareLoops.NE);
  private static final Op LT = compare("lt", CompareLoops.LT);
  private static final Op LE = compare("le", CompareLoops.LE);
  private static final Op GT = compare("gt", CompareLoops.GT);
  private static final Op GE = compare("ge", CompareLoops.GE);
  private static final Op EQ_SCALAR = scalar("eq_scalar", CompareLoops.EQ);
  private static final Op NE_SCALAR = scalar("ne_scalar", CompareLoops.NE);
  private static final Op LT_SCALAR = scalar("lt_scalar", CompareLoops.LT);
  private static final Op LE_SCALAR = scalar("le_scalar", CompareLoops.LE);
  private static final Op GT_SCALAR = scalar("gt_scalar", CompareLoops.GT);
  private static final Op GE_SCALAR = scalar("ge_scalar", CompareLoops.GE);
  private static final Op AND = compare("logical_and", CompareLoops.AND);
  private static final Op OR = compare("logical_or", CompareLoops.OR);
  private static final Op XOR = compare("logical_xor", CompareLoops.XOR);
  private static final Op NOT = compare("logical_not", CompareLoops.NOT);

  private static final Op WHERE =
      Op.function(
              "where",
              (in, a) -> {
                Check.bool("where", "condition", in[0]);
                return TensorSpec.one(Check.broadcast("where", in), Promotion.of(in[1], in[2]));
              },
              (in, out, a) -> Elementwise.run(MoreLoops.WHERE, out[0].dtype(), in, out[0], a))
          .cuda(Pointwise.resultTyped("where"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.of(
                  (ctx, g) -> {
                    Tensor c = ctx.input(0);
                    return new @Nullable Tensor[] {
                      null,
                      ctx.needs(1) ? Grads.reduce(ctx, 1, maskedFill(g, logicalNot(c), 0)) : null,
                      ctx.needs(2) ? Grads.reduce(ctx, 2, maskedFill(g, c, 0)) : null
                    };
                  }));

  private static final Op MASKED_FILL =
      Op.function(
              "masked_fill",
              (in, a) -> {
                checkFill("masked_fill", in, a);
                return TensorSpec.one(Check.broadcast("masked_fill", in), in[0].dtype());
              },
              (in, out, a) -> CopyKernels.maskedFill(in[0], in[1], out[0], a.get(0, Number.class)))
          .cuda(Pointwise.inputTyped("masked_fill"))
          .gradient(
              Op.Saves.INPUTS,
              Grads.unary((ctx, g) -> Grads.reduce(ctx, 0, maskedFill(g, ctx.input(1), 0))));

  static void checkFill(String op, Tensor[] in, Attrs a) {
    Check.bool(op, "mask", in[1]);
    Number v = Pointwise.number(op, a);
    if (Promotion.isFloating(v) && !in[0].dtype().isFloatingPoint()) {
      throw Check.bad(op, "value " + v + " is not an integer and the tensor is " + in[0].dtype());
    }
  }

  /** a == b. */
  public static Tensor eq(Tensor a, Tensor b) {
    return Dispatcher.call(EQ, Attrs.NONE, a, b);
  }

  /** a == value. */
  public static Tensor eq(Tensor a, Number value) {
    return Dispatcher.call(EQ_SCALAR, Attrs.of(value), a);
  }

  /** a != b. */
  public static Tensor ne(Tensor a, Tensor b) {
    return Dispatcher.call(NE, Attrs.NONE, a, b);
  }

  /** a != value. */
  public static Tensor ne(Tensor a, Number value) {
    return Dispatcher.call(NE_SCALAR, Attrs.of(value), a);
  }

  /** a &lt; b. */
  public static Tensor lt(Tensor a, Tensor b) {
    return Dispatcher.call(LT, Attrs.NONE, a, b);
  }

  /** a &lt; value. */
  public static Tensor lt(Tensor a, Number value) {
    return Dispatcher.call(LT_SCALAR, Attrs.of(value), a);
  }

  /** a &lt;= b. */
  public static Tensor le(Tensor a, Tensor b) {
    return Dispatcher.call(LE, Attrs.NONE, a, b);
  }

  /** a &lt;= value. */
  public static Tensor le(Tensor a, Number value) {
    return Dispatcher.call(LE_SCALAR, Attrs.of(value), a);
  }

  /** a &gt; b. */
  public static Tensor gt(Tensor a, Tensor b) {
    return Dispatcher.call(GT, Attrs.NONE, a, b);
  }

  /** a &gt; value. */
  public static Tensor gt(Tensor a, Number value) {
    return Dispatcher.call(GT_SCALAR, Attrs.of(value), a);
  }

  /** a &gt;= b. */
  public static Tensor ge(Tensor a, Tensor b) {
    return Dispatcher.call(GE, Attrs.NONE, a, b);
  }

  /** a &gt;= value. */
  public static Tensor ge(Tensor a, Number value) {
    return Dispatcher.call(GE_SCALAR, Attrs.of(value), a);
  }

  /** Both not 0. */
  public static Tensor logicalAnd(Tensor a, Tensor b) {
    return Dispatcher.call(AND, Attrs.NONE, a, b);
  }

  /** One not 0. */
  public static Tensor logicalOr(Tensor a, Tensor b) {
    return Dispatcher.call(OR, Attrs.NONE, a, b);
  }

  /** Exactly one not 0. */
  public static Tensor logicalXor(Tensor a, Tensor b) {
    return Dispatcher.call(XOR, Attrs.NONE, a, b);
  }

  /** Equal to 0. */
  public static Tensor logicalNot(Tensor a) {
    return Dispatcher.call(NOT, Attrs.NONE, a);
  }

  /** x where the condition (bool) is true, else y; all three broadcast. */
  public static Tensor where(Tensor condition, Tensor x, Tensor y) {
    return Dispatcher.call(WHERE, Attrs.NONE, condition, x, y);
  }

  /** A number where the mask (bool) is true, else x; both broadcast. */
  public static Tensor maskedFill(Tensor x, Tensor mask, Number value) {
    return Dispatcher.call(MASKED_FILL, Attrs.of(value), x, mask);
  }

  /** Whether shapes and all values are equal; NaN is not equal to itself. Reads the data. */
  public static boolean equal(Tensor a, Tensor b) {
    Check.sameDType("equal", a, b);
    return java.util.Arrays.equals(a.shape(), b.shape())
        && Reductions.all(eq(a, b), new int[0], false).item() != 0;
  }

  /**
   * Whether |a - b| &lt;= atol + rtol |b| everywhere; NaN is not close to itself. Reads the data.
   */
  public static boolean allClose(Tensor a, Tensor b, double rtol, double atol) {
    return allClose(a, b, rtol, atol, false);
  }

  /** The same, with the choice of counting NaN as close to NaN. */
  public static boolean allClose(Tensor a, Tensor b, double rtol, double atol, boolean equalNan) {
    Check.sameDType("allclose", a, b);
    Tensor bound = Pointwise.add(Pointwise.mul(Unary.abs(b), rtol), atol);
    Tensor close = logicalOr(le(Unary.abs(Pointwise.sub(a, b)), bound), eq(a, b));
    if (equalNan) {
      close = logicalOr(close, logicalAnd(Unary.isNan(a), Unary.isNan(b)));
    }
    return Reductions.all(close, new int[0], false).item() != 0;
  }
}
