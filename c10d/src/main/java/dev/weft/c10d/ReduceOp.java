package dev.weft.c10d;

import java.util.Arrays;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How the elements of several ranks become one. Immutable.
 *
 * <p>Sums and products of integers wrap around; a bool counts as a truth value (SUM, MAX and BOR
 * are "or", PRODUCT, MIN and BAND "and", BXOR "exclusive or"). AVG and a pre-multiplied sum are for
 * floating-point tensors only, the bitwise operations for integers and bool only. MIN and MAX
 * propagate NaN. float16 and bfloat16 are accumulated in float32 and rounded once.
 */
public final class ReduceOp {
  /** The kinds of reduction. */
  public enum Kind {
    /** The sum. */
    SUM,
    /** The sum divided by the number of ranks. */
    AVG,
    /** The product. */
    PRODUCT,
    /** The smallest. */
    MIN,
    /** The largest. */
    MAX,
    /** Bitwise and. */
    BAND,
    /** Bitwise or. */
    BOR,
    /** Bitwise exclusive or. */
    BXOR,
    /** The sum of each rank's elements times a factor. */
    PREMUL_SUM
  }

  /** The sum. */
  public static final ReduceOp SUM = new ReduceOp(Kind.SUM, 1);

  /** The mean over the ranks. */
  public static final ReduceOp AVG = new ReduceOp(Kind.AVG, 1);

  /** The product. */
  public static final ReduceOp PRODUCT = new ReduceOp(Kind.PRODUCT, 1);

  /** The smallest element. */
  public static final ReduceOp MIN = new ReduceOp(Kind.MIN, 1);

  /** The largest element. */
  public static final ReduceOp MAX = new ReduceOp(Kind.MAX, 1);

  /** Bitwise and. */
  public static final ReduceOp BAND = new ReduceOp(Kind.BAND, 1);

  /** Bitwise or. */
  public static final ReduceOp BOR = new ReduceOp(Kind.BOR, 1);

  /** Bitwise exclusive or. */
  public static final ReduceOp BXOR = new ReduceOp(Kind.BXOR, 1);

  private static final ReduceOp[] NAMED = {SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR};

  private final Kind kind;
  private final double factor;
  private final String text;

  private ReduceOp(Kind kind, double factor) {
    this.kind = kind;
    this.factor = factor;
    String name = kind.name().toLowerCase(Locale.ROOT);
    this.text = kind == Kind.PREMUL_SUM ? name + "(" + factor + ")" : name;
  }

  /** The sum of each rank's elements times a factor; all ranks give the same factor. */
  public static ReduceOp premulSum(double factor) {
    return new ReduceOp(Kind.PREMUL_SUM, factor);
  }

  /**
   * The operation of PyTorch's name, in any case: sum, avg, product, min, max, band, bor or bxor.
   *
   * @throws IllegalArgumentException if the name is none of these
   */
  public static ReduceOp of(String name) {
    String upper = name.toUpperCase(Locale.ROOT);
    for (ReduceOp op : NAMED) {
      if (op.kind.name().equals(upper)) {
        return op;
      }
    }
    String[] expected =
        Arrays.stream(NAMED)
            .map(o -> o.kind.name().toLowerCase(Locale.ROOT))
            .toArray(String[]::new);
    throw new IllegalArgumentException(
        "reduce op '" + name + "' is unknown; expected one of " + String.join(", ", expected));
  }

  /** The kind. */
  public Kind kind() {
    return kind;
  }

  /** What elements are multiplied with before the sum; 1 but for a pre-multiplied sum. */
  public double factor() {
    return factor;
  }

  @Override
  public boolean equals(@Nullable Object o) {
    return o instanceof ReduceOp other
        && other.kind == kind
        && Double.compare(other.factor, factor) == 0;
  }

  @Override
  public int hashCode() {
    return 31 * kind.hashCode() + Double.hashCode(factor);
  }

  @Override
  public String toString() {
    return text;
  }
}
