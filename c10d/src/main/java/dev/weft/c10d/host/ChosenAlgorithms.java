package dev.weft.c10d.host;

import dev.weft.c10d.GroupContext;
import dev.weft.c10d.LinkShape;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The collectives of a group, by what is chosen in the first one, when all ranks are there: shared
 * memory where the ranks are threads, or find that they can have it, and no slow link between them
 * is simulated; between several machines what {@link HierarchicalAlgorithms} do, else what {@link
 * ExchangeAlgorithms} do.
 */
final class ChosenAlgorithms implements Algorithms {
  private static final Logger LOG = LoggerFactory.getLogger(ChosenAlgorithms.class);

  private final RankContext context;
  private final MessageSettings settings;
  private volatile @Nullable Algorithms chosen;

  /**
   * The collectives of a group.
   *
   * @throws IllegalArgumentException if a variable does not read as it should
   */
  ChosenAlgorithms(GroupContext group) {
    this.context = group.rankContext();
    this.settings = MessageSettings.of(group);
  }

  @Override
  public String describe() {
    Algorithms there = chosen;
    return there == null ? "" : there.describe();
  }

  private Algorithms in(Round round) {
    Algorithms there = chosen;
    if (there == null) {
      there = choose(round);
      chosen = there;
      LOG.debug("group {} uses {}", round.group().describe(), there.describe());
    }
    return there;
  }

  private Algorithms choose(Round round) {
    HostGroup group = round.group();
    if (group.size() == 1) {
      return new ExchangeAlgorithms(settings, true);
    }
    if (!isSlow(group)) {
      if (!Endpoint.isOneProcess(context)) {
        return betweenProcesses(round);
      }
      if (SharedSizes.isForThreads(group.size())) {
        return shared(LocalSegments.of(context, group), group, true);
      }
    }
    String[] unused = settings.meet(round, "");
    return new ExchangeAlgorithms(settings, !isSlow(group));
  }

  private Algorithms shared(SharedSegment segment, HostGroup group, boolean direct) {
    return new SharedCollectives(segment, group, context.worldSize(), direct);
  }

  private Algorithms betweenProcesses(Round round) {
    Map<String, String> environment = context.environment();
    HostTransport wanted = HostTransport.of(environment);
    String own = SharedOffer.thisMachine(environment);
    String[] hosts = settings.meet(round, own);
    boolean several = Arrays.stream(hosts).anyMatch(h -> !h.equals(own));
    ExchangeAlgorithms messages = new ExchangeAlgorithms(settings, !several);
    if (wanted == HostTransport.TCP) {
      return messages;
    }
    if (several && wanted == HostTransport.AUTO) {
      Algorithms all = HierarchicalAlgorithms.of(round, settings, hosts, environment);
      return all == null ? messages : all;
    }
    SharedSegment segment =
        SharedMeeting.meet(
            round,
            SharedSizes.layout(round.group().size(), environment),
            wanted == HostTransport.SHM,
            environment);
    return segment == null ? messages : shared(segment, round.group(), false);
  }

  /** Whether some of its ranks are to talk as over a slow link, which memory is not. */
  private boolean isSlow(HostGroup group) {
    LinkShape shape = context.linkShape();
    if (shape == null) {
      return false;
    }
    int first = group.globalRank(0);
    for (int r = 1; r < group.size(); r++) {
      if (shape.isSlow(first, group.globalRank(r))) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    in(round).allReduce(round, staging, t, op);
  }

  @Override
  public void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op) {
    in(round).reduce(round, staging, t, root, op);
  }

  @Override
  public void broadcast(Round round, Staging staging, StridedTensor t, int root) {
    in(round).broadcast(round, staging, t, root);
  }

  @Override
  public void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype) {
    in(round).allGather(round, staging, name, outputs, input, dtype);
  }

  @Override
  public void reduceScatter(
      Round round,
      Staging staging,
      String name,
      Piece output,
      List<Piece> inputs,
      DType dtype,
      ReduceOp op) {
    in(round).reduceScatter(round, staging, name, output, inputs, dtype, op);
  }

  @Override
  public void allToAll(
      Round round,
      Staging staging,
      String name,
      List<Piece> outputs,
      List<Piece> inputs,
      DType dtype) {
    in(round).allToAll(round, staging, name, outputs, inputs, dtype);
  }

  @Override
  public void gather(
      Round round,
      Staging staging,
      Piece input,
      @Nullable List<Piece> outputs,
      int root,
      DType dtype) {
    in(round).gather(round, staging, input, outputs, root, dtype);
  }

  @Override
  public void scatter(
      Round round,
      Staging staging,
      Piece output,
      @Nullable List<Piece> inputs,
      int root,
      DType dtype) {
    in(round).scatter(round, staging, output, inputs, root, dtype);
  }

  @Override
  public void barrier(Round round) {
    in(round).barrier(round);
  }

  @Override
  public void close(boolean idle) {
    Algorithms there = chosen;
    chosen = null;
    if (there != null) {
      there.close(idle);
    }
  }
}
