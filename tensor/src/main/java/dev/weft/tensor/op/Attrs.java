package dev.weft.tensor.op;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of an operator that are not tensors, by position. Immutable; equal when all values
 * are, arrays element by element, so that decisions can be cached by them.
 */
public final class Attrs {
  /** No arguments. */
  public static final Attrs NONE = new Attrs();

  private final @Nullable Object[] values;

  private Attrs(@Nullable Object... values) {
    this.values = values;
  }

  /** Values of the types {@link Number}, {@link Boolean}, String, enum, long[] and int[]. */
  public static Attrs of(@Nullable Object... values) {
    return new Attrs(values);
  }

  /** How many there are. */
  public int size() {
    return values.length;
  }

  /** The value at a position. */
  public @Nullable Object get(int i) {
    return values[i];
  }

  /** True where the value is null or the position is past the end. */
  public boolean isNull(int i) {
    return i >= values.length || values[i] == null;
  }

  /** The value at a position, as a type. */
  public <T> T get(int i, Class<T> type) {
    Object v = values[i];
    if (v == null) {
      throw new IllegalArgumentException("attribute " + i + " is null; expected " + type);
    }
    return type.cast(v);
  }

  /** An int. */
  public int intAt(int i) {
    return get(i, Number.class).intValue();
  }

  /** A long. */
  public long longAt(int i) {
    return get(i, Number.class).longValue();
  }

  /** A double. */
  public double doubleAt(int i) {
    return get(i, Number.class).doubleValue();
  }

  /** A boolean. */
  public boolean boolAt(int i) {
    return get(i, Boolean.class);
  }

  /** An array of dimensions; not a copy. */
  public int[] intsAt(int i) {
    return get(i, int[].class);
  }

  /** An array of sizes; not a copy. */
  public long[] longsAt(int i) {
    return get(i, long[].class);
  }

  /** The same attributes with one value changed. */
  public Attrs with(int i, @Nullable Object value) {
    @Nullable Object[] copy = values.clone();
    copy[i] = value;
    return new Attrs(copy);
  }

  @Override
  public boolean equals(@Nullable Object o) {
    return o instanceof Attrs a && Arrays.deepEquals(values, a.values);
  }

  @Override
  public int hashCode() {
    return Arrays.deepHashCode(values);
  }

  @Override
  public String toString() {
    String s = Arrays.deepToString(values);
    return s.substring(1, s.length() - 1);
  }
}
