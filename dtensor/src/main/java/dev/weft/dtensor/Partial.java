package dev.weft.dtensor;

import dev.weft.c10d.ReduceOp;
import java.util.Locale;

/**
 * Every rank along the mesh dimension holds a contribution of the full shape; the value is their
 * reduction.
 *
 * @param op the reduction
 */
public record Partial(Op op) implements Placement {
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
    PRODUCT;

    /** The collective's reduction. */
    public ReduceOp reduceOp() {
      return switch (this) {
        case SUM -> ReduceOp.SUM;
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

  @Override
  public String toString() {
    return "P(" + op.label() + ")";
  }
}
