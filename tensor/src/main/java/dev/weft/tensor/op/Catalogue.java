package dev.weft.tensor.op;

import java.util.List;
import java.util.Map;

/** All operators of this module, registered: families register theirs when first used. */
public final class Catalogue {
  private static final List<Class<?>> FAMILIES =
      List.of(
          Activations.class,
          Attention.class,
          Casts.class,
          Compare.class,
          Creation.class,
          Extrema.class,
          Foreach.class,
          Gated.class,
          Indexing.class,
          InPlace.class,
          Joins.class,
          Losses.class,
          MatMul.class,
          Norms.class,
          Ordering.class,
          Rearrange.class,
          Splits.class,
          Pointwise.class,
          Random.class,
          Reductions.class,
          Softmaxes.class,
          Statistics.class,
          Unary.class,
          Updates.class,
          Views.class);

  private Catalogue() {}

  /** Registers all families of this module; returns {@link Op#catalogue}. */
  public static Map<String, Op> load() {
    for (Class<?> family : FAMILIES) {
      try {
        Class<?> unused = Class.forName(family.getName(), true, family.getClassLoader());
      } catch (ClassNotFoundException e) {
        throw new IllegalStateException("a family of operators has vanished", e);
      }
    }
    return Op.catalogue();
  }

  /**
   * The operator of a name.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static Op get(String name) {
    Op op = load().get(name);
    if (op == null) {
      throw new IllegalArgumentException("operator '" + name + "' is not in the catalogue");
    }
    return op;
  }
}
