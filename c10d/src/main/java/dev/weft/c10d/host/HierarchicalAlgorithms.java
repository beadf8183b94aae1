package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of a group whose ranks are on several machines, equally many on each. A large
 * all-reduce is a reduce-scatter inside each machine, an all-reduce of the parts across machines,
 * each between the ranks that have the same part, and an all-gather inside: of n ranks on a
 * machine, each sends 1/n of the data to others. All ranks get the same bits, which may differ in
 * the last place from those of a reduction in the order of ranks. What is small, and 16-bit floats,
 * which are to be rounded once, go as {@link ExchangeAlgorithms} do it; so does the rest.
 */
final class HierarchicalAlgorithms extends ExchangeAlgorithms {
  private final HostGroup inside;
  private final HostGroup across;
  private final Algorithms insides;
  private final long least;
  private long insideSteps;
  private long acrossSteps;

  private HierarchicalAlgorithms(
      HostGroup inside,
      HostGroup across,
      Algorithms insides,
      long insideSteps,
      MessageSettings settings) {
    super(settings, false);
    this.inside = inside;
    this.across = across;
    this.insides = insides;
    this.insideSteps = insideSteps;
    this.least = settings.hierarchicalBytes();
  }

  /**
   * The collectives of a group, in its first one; all ranks come to the same.
   *
   * @param hosts the machines of the ranks, by group rank; not all the same
   * @return null where the machines have different numbers of ranks, or one each, or nothing is
   *     large enough
   */
  static @Nullable Algorithms of(
      Round round, MessageSettings settings, String[] hosts, Map<String, String> environment) {
    if (settings.hierarchicalBytes() == MessageSettings.NEVER) {
      return null;
    }
    Map<String, List<Integer>> members = new java.util.LinkedHashMap<>();
    for (int r = 0; r < hosts.length; r++) {
      members.computeIfAbsent(hosts[r], h -> new ArrayList<>()).add(r);
    }
    HostGroup group = round.group();
    List<Integer> here = java.util.Objects.requireNonNull(members.get(hosts[group.rank()]));
    int n = here.size();
    if (n == 1 || members.values().stream().anyMatch(m -> m.size() != n)) {
      return null;
    }
    int index = here.indexOf(group.rank());
    HostGroup inside = group.part("host of " + group.globalRank(here.get(0)), here);
    HostGroup across =
        group.part(
            "place " + index, members.values().stream().map(m -> m.get(index)).sorted().toList());
    long first = 1;
    SharedSegment segment;
    try (Round meeting = round.step(inside, first)) {
      segment = SharedMeeting.meet(meeting, SharedSizes.layout(n, environment), false, environment);
    }
    Algorithms insides =
        segment == null
            ? new ExchangeAlgorithms(settings, true)
            : new SharedCollectives(segment, inside, n, false);
    return new HierarchicalAlgorithms(inside, across, insides, first, settings);
  }

  @Override
  public String describe() {
    return insides.describe() + " inside hosts, " + super.describe() + " across";
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    DType dtype = t.dtype();
    if (MessageTable.isHalf(dtype) || Staging.bytes(t) < least) {
      super.allReduce(round, staging, t, op);
      return;
    }
    Signature call = new Signature("all_reduce", dtype, op.toString(), -1, t.shape(), null, null);
    Pieces.open(round, call);
    List<Piece> parts = List.of(Pieces.parts(staging.inOut(t), dtype, inside.size()));
    Piece mine = parts.get(inside.rank());
    try (Round step = round.step(inside, ++insideSteps);
        Staging own = new Staging()) {
      insides.reduceScatter(step, own, "reduce_scatter", mine, parts, dtype, op);
      step.awaitLoans();
    }
    try (Round step = round.step(across, ++acrossSteps)) {
      // Elements have been multiplied inside; of means over equally many the mean is that of all.
      ReduceOp then = op.kind() == ReduceOp.Kind.PREMUL_SUM ? ReduceOp.SUM : op;
      long[] shape = {mine.bytes() / dtype.byteSize()};
      Signature part = new Signature("all_reduce", dtype, then.toString(), -1, shape, null, null);
      allReduce(step, part, dtype, then, mine);
      step.awaitLoans();
    }
    try (Round step = round.step(inside, ++insideSteps);
        Staging own = new Staging()) {
      insides.allGather(step, own, "all_gather", parts, mine, dtype);
      step.awaitLoans();
    }
    staging.finish();
  }

  @Override
  public void close(boolean idle) {
    insides.close(idle);
    inside.mailbox().closeGroup(inside.id());
    across.mailbox().closeGroup(across.id());
  }
}
