package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import java.util.Locale;

/**
 * Every rank along the mesh dimension holds a contribution of the full shape; the value is their
 * reduction.
 *
 * @param op the reduction
 * @param order p of a p-norm; 0 for the other reductions
 */
public record Partial(Op op, double order) implements Placement {
  /** The reductions that a value may be waiting for. */
  public enum Op {
    /** The sum of the contributions. */
    SUM,
    /** Their mean. */
    AVG,
    /** The smallest. */
    MIN,
    /** The largest. */
    MAX,
    /** Their product. */
    PRODUCT,
    /** The p-norm of the contributions as a vector, which are norms themselves. */
    NORM;

    /** The collective's reduction. */
    public ReduceOp reduceOp() {
      return switch (this) {
        case SUM, NORM -> ReduceOp.SUM; // a norm's contributions are raised to the power first
        case AVG -> ReduceOp.AVG;
        case MIN -> ReduceOp.MIN;
        case MAX -> ReduceOp.MAX;
        case PRODUCT -> ReduceOp.PRODUCT;
      };
    }

    /** Sum and average are linear: they commute with scaling and addition. */
    public boolean isLinear() {
      return this == SUM || this == AVG;
    }

    /** PyTorch's name. */
    public String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** Outstanding sum. */
  public static final Partial SUM = new Partial(Op.SUM);

  /** A reduction that needs no parameter. */
  public Partial(Op op) {
    this(op, 0);
  }

  /** An outstanding p-norm; 1, infinity and minus infinity are a sum and extrema. */
  public static Partial norm(double order) {
    if (order == 1) {
      return SUM;
    }
    if (Double.isInfinite(order)) {
      return new Partial(order > 0 ? Op.MAX : Op.MIN);
    }
    return new Partial(Op.NORM, order);
  }

  /** Whether reductions over different mesh dimensions may be outstanding together. */
  boolean mixesWith(Partial other) {
    return equals(other) || (op.isLinear() && other.op.isLinear());
  }

  @Override
  public String toString() {
    if (op == Op.NORM) {
      return "NP(" + (order == Math.rint(order) ? String.valueOf((long) order) : order) + ")";
    }
    return "P(" + op.label() + ")";
  }
}
