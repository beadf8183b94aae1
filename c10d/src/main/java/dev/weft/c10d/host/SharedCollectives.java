package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of one group through a {@link SharedSegment}. Where the ranks are threads, short
 * data go through it, and ranks lend each other the memory of long ones. Reductions go in the order
 * of ranks, so every rank gets the same bits, and the same as over TCP.
 */
final class SharedCollectives implements Algorithms {
  private static final int ALL = -1;
  private static final Signature BARRIER = new Signature("barrier", null, "", -1, null, null, null);

  private final SharedSegment segment;
  private final HostGroup group;
  private final SharedOpening opening;
  private final SharedMover mover;
  private final SharedAllReduce allReduce;
  private final LentAllReduce lent;
  private final boolean direct;
  private @Nullable Signature lastAllReduce;

  /**
   * The collectives of a group.
   *
   * @param ranksHere how many ranks share this machine's processors
   * @param direct whether ranks can read each other's memory
   */
  SharedCollectives(SharedSegment segment, HostGroup group, int ranksHere, boolean direct) {
    this.segment = segment;
    this.group = group;
    SharedWait wait = new SharedWait(segment, group, ranksHere, direct);
    SharedSteps steps = new SharedSteps(segment, group, wait, direct);
    Reducer reducer = new Reducer(group.size());
    this.opening = new SharedOpening(segment, group, wait);
    this.mover = new SharedMover(segment, group, opening, steps, reducer);
    this.allReduce = new SharedAllReduce(segment.layout(), group, steps, reducer);
    this.lent = new LentAllReduce(group, steps, reducer);
    this.direct = direct;
  }

  @Override
  public String describe() {
    return direct ? "memory of one process" : "shared memory";
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    Piece own = staging.inOut(t);
    Signature call = lastAllReduce;
    if (call == null || !call.isOf(t, op)) {
      call = new Signature("all_reduce", t.dtype(), op.toString(), -1, t.shape(), null, null);
      lastAllReduce = call;
    }
    if (own.bytes() <= segment.layout().inlineBytes()) {
      mover.run(
          round,
          new SharedMove(
              call,
              t.dtype(),
              true,
              ALL,
              ALL,
              List.of(own),
              null,
              new SharedMove.Fold(op, own, own)));
    } else if (direct) {
      Signature[] unused = opening.open(round, call);
      lent.run(round, t.dtype(), op, own);
    } else {
      allReduce.begin(round, own);
      Signature[] unused = opening.open(round, call);
      allReduce.run(round, t.dtype(), op, own);
    }
    staging.finish();
  }

  @Override
  public void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op) {
    boolean takes = group.rank() == root;
    Piece own = takes ? staging.inOut(t) : staging.in(t);
    Signature call = new Signature("reduce", t.dtype(), op.toString(), root, t.shape(), null, null);
    SharedMove.Fold fold = takes ? new SharedMove.Fold(op, own, own) : null;
    mover.run(
        round,
        new SharedMove(call, t.dtype(), true, ALL, root, takes ? null : List.of(own), null, fold));
    if (takes) {
      staging.finish();
    }
  }

  @Override
  public void broadcast(Round round, Staging staging, StridedTensor t, int root) {
    boolean gives = group.rank() == root;
    Piece own = gives ? staging.in(t) : staging.out(t);
    Signature call = new Signature("broadcast", t.dtype(), "", root, t.shape(), null, null);
    mover.run(
        round,
        new SharedMove(
            call,
            t.dtype(),
            true,
            root,
            ALL,
            gives ? List.of(own) : null,
            gives ? null : java.util.Collections.nCopies(group.size(), own),
            null));
    if (!gives) {
      staging.finish();
    }
  }

  @Override
  public void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype) {
    long[] sent = {input.bytes() / dtype.byteSize()};
    Signature call = new Signature(name, dtype, "", -1, null, sent, Pieces.counts(outputs, dtype));
    mover.run(round, new SharedMove(call, dtype, true, ALL, ALL, List.of(input), outputs, null));
    Pieces.move(input, outputs.get(group.rank()));
    staging.finish();
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
    long[] received = {output.bytes() / dtype.byteSize()};
    Signature call =
        new Signature(name, dtype, op.toString(), -1, null, Pieces.counts(inputs, dtype), received);
    SharedMove.Fold fold = new SharedMove.Fold(op, inputs.get(group.rank()), output);
    mover.run(round, new SharedMove(call, dtype, false, ALL, ALL, inputs, null, fold));
    staging.finish();
  }

  @Override
  public void allToAll(
      Round round,
      Staging staging,
      String name,
      List<Piece> outputs,
      List<Piece> inputs,
      DType dtype) {
    Signature call =
        new Signature(
            name, dtype, "", -1, null, Pieces.counts(inputs, dtype), Pieces.counts(outputs, dtype));
    mover.run(round, new SharedMove(call, dtype, false, ALL, ALL, inputs, outputs, null));
    Pieces.move(inputs.get(group.rank()), outputs.get(group.rank()));
    staging.finish();
  }

  @Override
  public void gather(
      Round round,
      Staging staging,
      Piece input,
      @Nullable List<Piece> outputs,
      int root,
      DType dtype) {
    long[] sent = {input.bytes() / dtype.byteSize()};
    long[] received = outputs == null ? null : Pieces.counts(outputs, dtype);
    Signature call = new Signature("gather", dtype, "", root, null, sent, received);
    List<Piece> give = outputs == null ? List.of(input) : null;
    mover.run(round, new SharedMove(call, dtype, true, ALL, root, give, outputs, null));
    if (outputs != null) {
      Pieces.move(input, outputs.get(root));
      staging.finish();
    }
  }

  @Override
  public void scatter(
      Round round,
      Staging staging,
      Piece output,
      @Nullable List<Piece> inputs,
      int root,
      DType dtype) {
    long[] sent = inputs == null ? null : Pieces.counts(inputs, dtype);
    long[] received = {output.bytes() / dtype.byteSize()};
    Signature call = new Signature("scatter", dtype, "", root, null, sent, received);
    List<Piece> into = inputs == null ? java.util.Collections.nCopies(group.size(), output) : null;
    mover.run(round, new SharedMove(call, dtype, false, root, ALL, inputs, into, null));
    if (inputs != null) {
      Pieces.move(inputs.get(root), output);
    }
    staging.finish();
  }

  @Override
  public void barrier(Round round) {
    Signature[] unused = opening.open(round, BARRIER);
  }

  @Override
  public void close(boolean idle) {
    // Memory that a thread still works on stays mapped until the thread has let go of it.
    if (idle) {
      segment.release();
    }
  }
}
