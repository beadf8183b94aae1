package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * PyTorch's rule for the dtype of a result: tensors with dimensions come first, 0-dim tensors count
 * only where they are of a higher category, plain numbers only where those are, too. Stateless.
 *
 * @see <a href="https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc">the
 *     rule</a>
 */
public final class Promotion {
  private Promotion() {}

  /** The dtype of a floating-point number without a tensor. */
  public static final DType DEFAULT_FLOAT = DType.FLOAT32;

  /** The dtype that tensors are computed in together. */
  public static DType of(Tensor... tensors) {
    return of(null, tensors);
  }

  /** The dtype that tensors and perhaps a number are computed in together. */
  public static DType of(@Nullable Number number, Tensor... tensors) {
    DType dimensioned = null;
    DType scalars = null;
    for (Tensor t : tensors) {
      if (t.shape().length > 0) {
        dimensioned = dimensioned == null ? t.dtype() : DType.promote(dimensioned, t.dtype());
      } else {
        scalars = scalars == null ? t.dtype() : DType.promote(scalars, t.dtype());
      }
    }
    DType lower = combine(scalars, number == null ? null : of(number));
    DType result = combine(dimensioned, lower);
    return result == null ? DEFAULT_FLOAT : result;
  }

  /** The dtype that a plain number stands for. */
  public static DType of(Number number) {
    return isFloating(number) ? DEFAULT_FLOAT : DType.INT64;
  }

  /** The floating-point dtype for a function that has no integer result. */
  public static DType floating(DType dtype) {
    return dtype.isFloatingPoint() ? dtype : DEFAULT_FLOAT;
  }

  /** True for Float and Double; other numbers are integers. */
  public static boolean isFloating(Number number) {
    return number instanceof Double || number instanceof Float;
  }

  private static @Nullable DType combine(@Nullable DType higher, @Nullable DType lower) {
    if (higher == null) {
      return lower;
    }
    if (lower == null || higher.isFloatingPoint()) {
      return higher;
    }
    if (higher == DType.BOOL || lower.isFloatingPoint()) {
      return DType.promote(higher, lower);
    }
    return higher;
  }
}
