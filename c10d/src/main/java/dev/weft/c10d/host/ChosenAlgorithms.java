package dev.weft.c10d.host;

import dev.weft.c10d.LinkShape;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of a group, by what is chosen in the first one, when all ranks are there: shared
 * memory where the ranks are threads, or find that they can have it, and no slow link between them
 * is simulated; else what {@link ExchangeAlgorithms} do.
 */
final class ChosenAlgorithms implements Algorithms {
  private final RankContext context;
  private volatile @Nullable Algorithms chosen;

  ChosenAlgorithms(RankContext context) {
    this.context = context;
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
    }
    return there;
  }

  private Algorithms choose(Round round) {
    HostGroup group = round.group();
    if (isSlow(group)) {
      return new ExchangeAlgorithms();
    }
    SharedSegment segment = null;
    boolean direct = Endpoint.isOneProcess(context);
    if (direct) {
      segment = SharedSizes.isForThreads(group.size()) ? LocalSegments.of(context, group) : null;
    } else if (group.size() > 1) {
      segment = mapped(round);
    }
    return segment == null
        ? new ExchangeAlgorithms()
        : new SharedCollectives(segment, group, context.worldSize(), direct);
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

  private @Nullable SharedSegment mapped(Round round) {
    Map<String, String> environment = context.environment();
    HostTransport wanted = HostTransport.of(environment);
    return wanted == HostTransport.TCP
        ? null
        : SharedMeeting.meet(
            round,
            SharedSizes.layout(round.group().size(), environment),
            wanted == HostTransport.SHM,
            environment);
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
