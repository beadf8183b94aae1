package dev.weft.dtensor;

import java.util.List;

/**
 * The steps of a redistribution, in order. Immutable and the same on every rank.
 *
 * @param steps empty where source and target are the same
 */
public record Plan(List<Step> steps) {
  /** What a step does along its mesh dimension. */
  public enum Action {
    /** Partial to Replicate. */
    ALL_REDUCE(true),
    /** Partial to Shard. */
    REDUCE_SCATTER(true),
    /** Shard to Replicate. */
    ALL_GATHER(true),
    /** Shard to Shard of another tensor dimension. */
    ALL_TO_ALL(true),
    /** Replicate to Shard: each rank keeps its part. */
    CUT(false),
    /** Replicate to Partial: sums are divided among the ranks. */
    SPLIT_VALUE(false);

    private final boolean collective;

    Action(boolean collective) {
      this.collective = collective;
    }

    /** Whether ranks communicate. */
    public boolean isCollective() {
      return collective;
    }
  }

  /**
   * One step.
   *
   * @param meshDims the mesh dimensions along which it acts, ascending; several where one group
   *     spans them
   * @param from what the placement on each of them was
   * @param to what it becomes
   * @param bytes what moves over a group of ranks in total
   */
  public record Step(
      List<Integer> meshDims, Placement from, Placement to, Action action, long bytes) {
    /** The only mesh dimension, or the outermost of several. */
    public int meshDim() {
      return meshDims.get(0);
    }

    @Override
    public String toString() {
      return "mesh dim "
          + (meshDims.size() == 1 ? meshDims.get(0).toString() : meshDims.toString())
          + ": "
          + from
          + " -> "
          + to
          + " by "
          + action
          + ", "
          + bytes
          + " B";
    }
  }

  /** Bytes of all steps. */
  public long bytes() {
    return steps.stream().mapToLong(Step::bytes).sum();
  }

  /** The number of collectives. */
  public int collectives() {
    return (int) steps.stream().filter(s -> s.action().isCollective() && s.bytes() >= 0).count();
  }

  /** One line a step. */
  public String explain() {
    if (steps.isEmpty()) {
      return "nothing to do";
    }
    StringBuilder text = new StringBuilder();
    for (Step s : steps) {
      text.append(s).append('\n');
    }
    return text.append("total ").append(bytes()).append(" B").toString();
  }
}
