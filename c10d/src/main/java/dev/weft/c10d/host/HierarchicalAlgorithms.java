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
  private static final int HOSTS = 5;

  private final HostGroup inside;
  private final HostGroup across;
  private final Algorithms insides;
  private final long least;
  private long insideSteps;
  private long acrossSteps;

  private HierarchicalAlgorithms(
      HostGroup inside, HostGroup across, Algorithms insides, long insideSteps, long least) {
    this.inside = inside;
    this.across = across;
    this.insides = insides;
    this.insideSteps = insideSteps;
    this.least = least;
  }

  /**
   * What a group's ranks have to know of each other, the same on all of them.
   *
   * @param hosts the ranks' machines, by group rank
   * @param least from how many bytes on the first one takes an all-reduce for large; negative for
   *     never
   */
  record Places(String[] hosts, long least) {}

  /** Tells the other ranks, in the group's first collective. */
  static Places places(Round round, String own, long least) {
    String told = least + " " + own;
    round.tell(HOSTS, told);
    String[] all = round.toldByAll(HOSTS, told);
    String[] hosts = new String[all.length];
    for (int r = 0; r < all.length; r++) {
      hosts[r] = all[r].substring(all[r].indexOf(' ') + 1);
    }
    return new Places(hosts, Long.parseLong(all[0].substring(0, all[0].indexOf(' '))));
  }

  /**
   * The collectives of a group, in its first one; all ranks come to the same.
   *
   * @param places not all on the same machine, and something is large
   * @return null where the machines have different numbers of ranks, or one each
   */
  static @Nullable Algorithms of(Round round, Places places, Map<String, String> environment) {
    String[] hosts = places.hosts();
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
            ? new ExchangeAlgorithms()
            : new SharedCollectives(segment, inside, n, false);
    return new HierarchicalAlgorithms(inside, across, insides, first, places.least());
  }

  @Override
  public String describe() {
    return insides.describe() + " inside hosts, pairwise messages across";
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    DType dtype = t.dtype();
    boolean rounds = dtype.isFloatingPoint() && dtype.byteSize() == 2;
    if (rounds || Staging.bytes(t) < least) {
      super.allReduce(round, staging, t, op);
      return;
    }
    Signature call = new Signature("all_reduce", dtype, op.toString(), -1, t.shape(), null, null);
    @Nullable Payload[] unused = round.exchange(call, nothing(round), nobody(round));
    List<Piece> parts = parts(staging.inOut(t), dtype);
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

  private List<Piece> parts(Piece whole, DType dtype) {
    int n = inside.size();
    long numel = whole.bytes() / dtype.byteSize();
    List<Piece> out = new ArrayList<>(n);
    for (int r = 0; r < n; r++) {
      long start = numel * r / n * dtype.byteSize();
      long end = numel * (r + 1) / n * dtype.byteSize();
      out.add(new Piece(whole.address() + start, end - start));
    }
    return out;
  }

  @Override
  public void close(boolean idle) {
    insides.close(idle);
    inside.mailbox().closeGroup(inside.id());
    across.mailbox().closeGroup(across.id());
  }
}
