package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The collectives in terms of exchanged pieces; it has no state. Reductions go in the order of
 * ranks, so every rank gets the same bits; a large all-reduce is a reduction of one part per rank,
 * then an exchange of the parts.
 */
class ExchangeAlgorithms implements Algorithms {
  @Override
  public String describe() {
    return "pairwise messages";
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    Piece own = staging.inOut(t);
    Signature call =
        new Signature("all_reduce", t.dtype(), op.toString(), -1, t.shape(), null, null);
    allReduce(round, call, t.dtype(), op, own);
    staging.finish();
  }

  static void allReduce(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    if (own.bytes() <= Round.INLINE || round.group().size() == 1) {
      @Nullable Payload[] others = round.exchange(call, toAll(round, own), round.others());
      reduce(round, dtype, op, own, others, own);
    } else {
      allReduceInParts(round, call, dtype, op, own);
    }
  }

  private static void allReduceInParts(
      Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    int n = round.group().size();
    int me = round.group().rank();
    long numel = own.bytes() / dtype.byteSize();
    @Nullable Piece[] parts = new @Nullable Piece[n];
    for (int r = 0; r < n; r++) {
      long start = numel * r / n * dtype.byteSize();
      long end = numel * (r + 1) / n * dtype.byteSize();
      parts[r] = new Piece(own.address() + start, end - start);
    }
    Piece mine = Objects.requireNonNull(parts[me]);
    // Only this rank reads its part of its own memory, so the result may go there at once.
    @Nullable Payload[] others = round.exchange(call, parts, round.others());
    reduce(round, dtype, op, mine, others, mine);
    // A peer that sends its finished part has read all it needs from here.
    @Nullable Payload[] finished = new @Nullable Payload[n];
    round.pass(2, toAll(round, mine), round.others(), finished);
    for (int r = 0; r < n; r++) {
      if (r != me) {
        take(finished[r], Objects.requireNonNull(parts[r]).address());
      }
    }
  }

  @Override
  public void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op) {
    int me = round.group().rank();
    Piece own = me == root ? staging.inOut(t) : staging.in(t);
    Signature call = new Signature("reduce", t.dtype(), op.toString(), root, t.shape(), null, null);
    @Nullable Payload[] others =
        round.exchange(
            call,
            me == root ? nothing(round) : toOne(round, root, own),
            me == root ? round.others() : nobody(round));
    if (me == root) {
      reduce(round, t.dtype(), op, own, others, own);
      staging.finish();
    }
  }

  @Override
  public void broadcast(Round round, Staging staging, StridedTensor t, int root) {
    boolean sends = round.group().rank() == root;
    Piece own = sends ? staging.in(t) : staging.out(t);
    Signature call = new Signature("broadcast", t.dtype(), "", root, t.shape(), null, null);
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            sends ? toAll(round, own) : nothing(round),
            sends ? nobody(round) : only(round, root));
    if (!sends) {
      take(arrived[root], own.address());
      staging.finish();
    }
  }

  /** Every rank's input to every rank; outputs are in the order of ranks. */
  @Override
  public void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype) {
    long[] sent = {input.bytes() / dtype.byteSize()};
    Signature call = new Signature(name, dtype, "", -1, null, sent, counts(outputs, dtype));
    @Nullable Payload[] arrived = round.exchange(call, toAll(round, input), round.others());
    takeAll(round, arrived, outputs, input);
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
        new Signature(name, dtype, op.toString(), -1, null, counts(inputs, dtype), received);
    @Nullable Payload[] others =
        round.exchange(call, inputs.toArray(new @Nullable Piece[0]), round.others());
    reduce(round, dtype, op, inputs.get(round.group().rank()), others, output);
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
        new Signature(name, dtype, "", -1, null, counts(inputs, dtype), counts(outputs, dtype));
    @Nullable Payload[] arrived =
        round.exchange(call, inputs.toArray(new @Nullable Piece[0]), round.others());
    takeAll(round, arrived, outputs, inputs.get(round.group().rank()));
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
    long[] received = outputs == null ? null : counts(outputs, dtype);
    Signature call = new Signature("gather", dtype, "", root, null, sent, received);
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            outputs == null ? toOne(round, root, input) : nothing(round),
            outputs == null ? nobody(round) : round.others());
    if (outputs != null) {
      takeAll(round, arrived, outputs, input);
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
    long[] sent = inputs == null ? null : counts(inputs, dtype);
    long[] received = {output.bytes() / dtype.byteSize()};
    Signature call = new Signature("scatter", dtype, "", root, null, sent, received);
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            inputs == null ? nothing(round) : inputs.toArray(new @Nullable Piece[0]),
            inputs == null ? only(round, root) : nobody(round));
    if (inputs == null) {
      take(arrived[root], output.address());
    } else {
      move(inputs.get(root), output);
    }
    staging.finish();
  }

  @Override
  public void barrier(Round round) {
    Signature call = new Signature("barrier", null, "", -1, null, null, null);
    @Nullable Payload[] unused = round.exchange(call, nothing(round), nobody(round));
  }

  @Override
  public void close(boolean idle) {}

  // ---- pieces ----

  private static void reduce(
      Round round, DType dtype, ReduceOp op, Piece own, @Nullable Payload[] others, Piece target) {
    long[] sources = new long[others.length];
    for (int r = 0; r < sources.length; r++) {
      Payload payload = others[r];
      sources[r] =
          r == round.group().rank() ? own.address() : Objects.requireNonNull(payload).address();
    }
    Lanes.reduce(dtype, op, sources, target.bytes() / dtype.byteSize(), target.address());
    for (Payload payload : others) {
      if (payload != null) {
        payload.release();
      }
    }
  }

  private static void takeAll(
      Round round, @Nullable Payload[] arrived, List<Piece> outputs, Piece own) {
    for (int r = 0; r < arrived.length; r++) {
      if (r == round.group().rank()) {
        move(own, outputs.get(r));
      } else {
        take(arrived[r], outputs.get(r).address());
      }
    }
  }

  private static void take(@Nullable Payload payload, long target) {
    Payload p = Objects.requireNonNull(payload);
    p.copyTo(target);
    p.release();
  }

  private static void move(Piece from, Piece to) {
    if (from.address() != to.address()) {
      Memory.copy(from.address(), to.address(), from.bytes());
    }
  }

  private static long[] counts(List<Piece> pieces, DType dtype) {
    return pieces.stream().mapToLong(p -> p.bytes() / dtype.byteSize()).toArray();
  }

  private static @Nullable Piece[] toAll(Round round, Piece piece) {
    @Nullable Piece[] all = new @Nullable Piece[round.group().size()];
    Arrays.fill(all, piece);
    return all;
  }

  private static @Nullable Piece[] toOne(Round round, int rank, Piece piece) {
    @Nullable Piece[] all = new @Nullable Piece[round.group().size()];
    all[rank] = piece;
    return all;
  }

  static @Nullable Piece[] nothing(Round round) {
    return new @Nullable Piece[round.group().size()];
  }

  static boolean[] nobody(Round round) {
    return new boolean[round.group().size()];
  }

  private static boolean[] only(Round round, int rank) {
    boolean[] one = nobody(round);
    one[rank] = true;
    return one;
  }
}
