package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import org.jspecify.annotations.Nullable;

/**
 * The ways of a reduction to one rank between ranks that exchange messages; in the order of ranks,
 * in place at the root. Stateless.
 */
final class MessageReduce {
  private static final int PARTS = Pieces.FIRST_PHASE;

  private MessageReduce() {}

  /** All elements to the root. */
  static void flat(Round round, Signature call, DType dtype, ReduceOp op, Piece own) {
    boolean takes = round.group().rank() == call.root();
    @Nullable Payload[] others =
        round.exchange(
            call,
            takes ? Pieces.nothing(round) : Pieces.toOne(round, call.root(), own),
            takes ? round.others() : Pieces.nobody(round));
    if (takes) {
      Pieces.reduce(round, dtype, op, own, others, own);
    }
  }

  /** Each rank reduces one part, which then goes to the root. */
  static void scatter(
      Round round, Staging staging, Signature call, DType dtype, ReduceOp op, Piece own) {
    int n = round.group().size();
    int me = round.group().rank();
    int root = call.root();
    boolean takes = me == root;
    Piece[] parts = Pieces.parts(own, dtype, n);
    @Nullable Payload[] others = round.exchange(call, parts, round.others());
    Piece target = takes ? parts[me] : staging.block(parts[me].bytes());
    Pieces.reduce(round, dtype, op, parts[me], others, target);
    // A peer that sends its finished part has read all it needs from the root.
    @Nullable Payload[] finished =
        Pieces.pass(
            round,
            PARTS,
            takes ? Pieces.nothing(round) : Pieces.toOne(round, root, target),
            takes ? round.others() : Pieces.nobody(round));
    for (int r = 0; takes && r < n; r++) {
      if (r != me) {
        Pieces.take(finished[r], parts[r]);
      }
    }
  }
}
