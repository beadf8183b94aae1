package dev.weft.tensor;

import java.util.Locale;

/** The element types of a tensor, with PyTorch's names and promotion rules. Immutable. */
public enum DType {
  /** IEEE 754 double. */
  FLOAT64(8, Category.FLOATING),
  /** IEEE 754 single. */
  FLOAT32(4, Category.FLOATING),
  /** IEEE 754 half: 5 exponent bits, 10 mantissa bits. */
  FLOAT16(2, Category.FLOATING),
  /** The upper half of a float32: 8 exponent bits, 7 mantissa bits. */
  BFLOAT16(2, Category.FLOATING),
  /** Signed 64-bit integer. */
  INT64(8, Category.INTEGRAL),
  /** Signed 32-bit integer. */
  INT32(4, Category.INTEGRAL),
  /** Signed 16-bit integer. */
  INT16(2, Category.INTEGRAL),
  /** Signed 8-bit integer. */
  INT8(1, Category.INTEGRAL),
  /** Unsigned 8-bit integer. */
  UINT8(1, Category.INTEGRAL),
  /** One byte an element: 0 is false, everything else true. */
  BOOL(1, Category.BOOLEAN);

  /** The three kinds of numbers, in ascending order of promotion. */
  public enum Category {
    /** Truth values. */
    BOOLEAN,
    /** Integers. */
    INTEGRAL,
    /** Floating-point numbers. */
    FLOATING
  }

  private final int byteSize;
  private final Category category;
  private final String label;

  DType(int byteSize, Category category) {
    this.byteSize = byteSize;
    this.category = category;
    this.label = name().toLowerCase(Locale.ROOT);
  }

  /** Bytes of one element. */
  public int byteSize() {
    return byteSize;
  }

  /** Whether this is a boolean, an integer or a floating-point type. */
  public Category category() {
    return category;
  }

  /** True for float64, float32, float16 and bfloat16. */
  public boolean isFloatingPoint() {
    return category == Category.FLOATING;
  }

  /** True for the integer types; false for bool. */
  public boolean isIntegral() {
    return category == Category.INTEGRAL;
  }

  /** PyTorch's name, such as {@code float32}. */
  public String label() {
    return label;
  }

  /**
   * The dtype of PyTorch's name.
   *
   * @throws IllegalArgumentException if there is none of that name
   */
  public static DType of(String label) {
    for (DType d : values()) {
      if (d.label.equals(label)) {
        return d;
      }
    }
    throw new IllegalArgumentException(
        "dtype '" + label + "' is unknown; expected one of " + java.util.Arrays.toString(values()));
  }

  /**
   * The smallest dtype that holds both by PyTorch's lattice: a higher category wins; within floats
   * float16 with bfloat16 gives float32; uint8 with a signed integer gives the next larger signed
   * one.
   */
  public static DType promote(DType a, DType b) {
    if (a == b) {
      return a;
    }
    if (a.category != b.category) {
      return a.category.compareTo(b.category) > 0 ? a : b;
    }
    if (a.category == Category.FLOATING) {
      return a.byteSize == b.byteSize ? FLOAT32 : (a.byteSize > b.byteSize ? a : b);
    }
    DType wide = a.byteSize >= b.byteSize ? a : b;
    DType narrow = wide == a ? b : a;
    if (wide.byteSize == narrow.byteSize) {
      return INT16; // uint8 with int8
    }
    return narrow == UINT8 || wide != UINT8 ? wide : INT16;
  }

  @Override
  public String toString() {
    return label;
  }
}
