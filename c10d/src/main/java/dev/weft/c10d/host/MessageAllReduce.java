package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The ways of an all-reduce between ranks that exchange messages; all work in place. Stateless. */
final class MessageAllReduce {
  private static final int LATER = Pieces.FIRST_PHASE;

  private MessageAllReduce() {}

  /** All elements to all ranks, each of which reduces for itself. */
  static void flat(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    @Nullable Payload[] others = round.exchange(call, Pieces.toAll(round, own), round.others());
    if (own.bytes() <= Round.INLINE) {
      Pieces.reduce(round, dtype, op, own, others, own);
      return;
    }
    // Others may still read this rank's elements: what is lent stays as it is.
    try (Staging result = new Staging()) {
      Piece target = result.block(own.bytes());
      Pieces.reduce(round, dtype, op, own, others, target);
      round.awaitLoans();
      Pieces.move(target, own);
    }
  }

  /** Each rank reduces one part, which then goes to all. */
  static void direct(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    int n = round.group().size();
    int me = round.group().rank();
    Piece[] parts = Pieces.parts(own, dtype, n);
    Piece mine = parts[me];
    // Only this rank reads its part of its own memory, so the result may go there at once.
    @Nullable Payload[] others = round.exchange(call, parts, round.others());
    Pieces.reduce(round, dtype, op, mine, others, mine);
    // A peer that sends its finished part has read all it needs from here.
    @Nullable Payload[] finished =
        Pieces.pass(round, LATER, Pieces.toAll(round, mine), round.others());
    Pieces.takeAll(round, finished, List.of(parts), mine);
  }

  /**
   * Each part goes round from the rank after its own to its own, and is reduced on the way; then it
   * goes round once more (Patarasuk and Yuan, 2009). Not of 16-bit floats, which are to be rounded
   * once.
   */
  static void ring(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    int n = round.group().size();
    int me = round.group().rank();
    Piece[] parts = Pieces.parts(own, dtype, n);
    Pieces.open(round, call);
    int phase = LATER;
    if (op.kind() == ReduceOp.Kind.PREMUL_SUM) {
      Lanes.reduce(
          dtype, op, new long[] {own.address()}, own.bytes() / dtype.byteSize(), own.address());
    }
    ReduceOp on =
        switch (op.kind()) {
          case AVG, PREMUL_SUM -> ReduceOp.SUM;
          default -> op;
        };
    for (int s = 1; s < n; s++) {
      Piece gives = parts[Math.floorMod(me - s, n)];
      Piece takes = parts[Math.floorMod(me - s - 1, n)];
      Payload came = Pieces.fitting(next(round, phase++, gives), takes);
      boolean last = s == n - 1;
      Lanes.reduce(
          dtype,
          last && op.kind() == ReduceOp.Kind.AVG ? op : on,
          n,
          new long[] {came.address(), takes.address()},
          takes.bytes() / dtype.byteSize(),
          takes.address());
      came.release();
    }
    for (int s = 0; s < n - 1; s++) {
      Payload came = next(round, phase++, parts[Math.floorMod(me - s, n)]);
      Pieces.take(came, parts[Math.floorMod(me - s - 1, n)]);
    }
  }

  /** Sends to the next rank, and gives what comes from the one before. */
  private static Payload next(Round round, int phase, Piece piece) {
    int n = round.group().size();
    int me = round.group().rank();
    int before = Math.floorMod(me - 1, n);
    @Nullable Payload[] arrived =
        Pieces.pass(
            round, phase, Pieces.toOne(round, (me + 1) % n, piece), Pieces.only(round, before));
    return Objects.requireNonNull(arrived[before]);
  }
}
