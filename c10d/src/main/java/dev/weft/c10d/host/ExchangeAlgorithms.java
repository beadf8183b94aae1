package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The collectives in terms of exchanged pieces, each as {@link MessageTable} or the group's
 * settings say; it has no other state. Reductions go in the order of ranks, so every rank gets the
 * same bits, but for those of {@link MessageAlgorithm#RING}, which has an order of its own.
 */
class ExchangeAlgorithms implements Algorithms {
  private final MessageSettings settings;
  private final boolean together;

  /**
   * The collectives of a group.
   *
   * @param together whether all ranks are on one machine, whose processors are the bound
   */
  ExchangeAlgorithms(MessageSettings settings, boolean together) {
    this.settings = settings;
    this.together = together;
  }

  @Override
  public String describe() {
    return "pairwise messages" + settings.describe();
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    Piece own = staging.inOut(t);
    Signature call =
        new Signature("all_reduce", t.dtype(), op.toString(), -1, t.shape(), null, null);
    allReduce(round, call, t.dtype(), op, own);
    staging.finish();
  }

  final void allReduce(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    int n = round.group().size();
    MessageAlgorithm table = MessageTable.allReduce(own.bytes(), n);
    MessageAlgorithm chosen = settings.choose("all_reduce", table);
    if (chosen == MessageAlgorithm.HIERARCHICAL) {
      chosen = table; // not several hosts with several ranks each: as if nothing was named
    } else if (chosen == MessageAlgorithm.RING && MessageTable.isHalf(dtype)) {
      chosen = MessageAlgorithm.DIRECT;
    }
    switch (chosen) {
      case FLAT -> MessageAllReduce.flat(round, call, dtype, op, own);
      case RING -> MessageAllReduce.ring(round, call, dtype, op, own);
      default -> MessageAllReduce.direct(round, call, dtype, op, own);
    }
  }

  @Override
  public void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op) {
    boolean takes = round.group().rank() == root;
    Piece own = takes ? staging.inOut(t) : staging.in(t);
    Signature call = new Signature("reduce", t.dtype(), op.toString(), root, t.shape(), null, null);
    switch (settings.choose(
        "reduce", MessageTable.rooted(own.bytes(), round.group().size(), together))) {
      case SCATTER -> MessageReduce.scatter(round, staging, call, t.dtype(), op, own);
      default -> MessageReduce.flat(round, call, t.dtype(), op, own);
    }
    if (takes) {
      staging.finish();
    }
  }

  @Override
  public void broadcast(Round round, Staging staging, StridedTensor t, int root) {
    boolean sends = round.group().rank() == root;
    Piece own = sends ? staging.in(t) : staging.out(t);
    Signature call = new Signature("broadcast", t.dtype(), "", root, t.shape(), null, null);
    int n = round.group().size();
    switch (settings.choose("broadcast", MessageTable.rooted(own.bytes(), n, together))) {
      case SCATTER -> MessageBroadcast.scatter(round, call, t.dtype(), own);
      default -> MessageBroadcast.flat(round, call, own);
    }
    if (!sends) {
      staging.finish();
    }
  }

  /** Every rank's input to every rank; outputs are in the order of ranks. */
  @Override
  public void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype) {
    long[] sent = {input.bytes() / dtype.byteSize()};
    Signature call = new Signature(name, dtype, "", -1, null, sent, Pieces.counts(outputs, dtype));
    @Nullable Payload[] arrived = round.exchange(call, Pieces.toAll(round, input), round.others());
    Pieces.takeAll(round, arrived, outputs, input);
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
    @Nullable Payload[] others =
        round.exchange(call, inputs.toArray(new @Nullable Piece[0]), round.others());
    Pieces.reduce(round, dtype, op, inputs.get(round.group().rank()), others, output);
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
    @Nullable Payload[] arrived =
        round.exchange(call, inputs.toArray(new @Nullable Piece[0]), round.others());
    Pieces.takeAll(round, arrived, outputs, inputs.get(round.group().rank()));
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
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            outputs == null ? Pieces.toOne(round, root, input) : Pieces.nothing(round),
            outputs == null ? Pieces.nobody(round) : round.others());
    if (outputs != null) {
      Pieces.takeAll(round, arrived, outputs, input);
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
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            inputs == null ? Pieces.nothing(round) : inputs.toArray(new @Nullable Piece[0]),
            inputs == null ? Pieces.only(round, root) : Pieces.nobody(round));
    if (inputs == null) {
      Pieces.take(arrived[root], output);
    } else {
      Pieces.move(inputs.get(root), output);
    }
    staging.finish();
  }

  @Override
  public void barrier(Round round) {
    Signature call = new Signature("barrier", null, "", -1, null, null, null);
    @Nullable Payload[] unused = round.exchange(call, Pieces.nothing(round), Pieces.nobody(round));
  }

  @Override
  public void close(boolean idle) {}
}
