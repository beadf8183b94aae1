package dev.weft.c10d.host;

import dev.weft.tensor.DType;
import org.jspecify.annotations.Nullable;

/** The ways of a broadcast between ranks that exchange messages. Stateless. */
final class MessageBroadcast {
  private static final int DATA = Pieces.FIRST_PHASE;
  private static final int PARTS = DATA + 1;

  private MessageBroadcast() {}

  /** From the root to all. */
  static void flat(Round round, Signature call, Piece own) {
    boolean sends = round.group().rank() == call.root();
    @Nullable Payload[] arrived =
        round.exchange(
            call,
            sends ? Pieces.toAll(round, own) : Pieces.nothing(round),
            sends ? Pieces.nobody(round) : Pieces.only(round, call.root()));
    if (!sends) {
      Pieces.take(arrived[call.root()], own);
    }
  }

  /** A part from the root to each rank, which passes it on to the others. */
  static void scatter(Round round, Signature call, DType dtype, Piece own) {
    int n = round.group().size();
    int me = round.group().rank();
    int root = call.root();
    Piece[] parts = Pieces.parts(own, dtype, n);
    Pieces.open(round, call);
    boolean sends = me == root;
    @Nullable Payload[] first =
        Pieces.pass(
            round,
            DATA,
            sends ? parts : Pieces.nothing(round),
            sends ? Pieces.nobody(round) : Pieces.only(round, root));
    if (!sends) {
      Pieces.take(first[root], parts[me]);
    }
    @Nullable Piece[] on = Pieces.toAll(round, parts[me]);
    on[root] = null;
    boolean[] from = sends ? Pieces.nobody(round) : round.others();
    @Nullable Payload[] rest = Pieces.pass(round, PARTS, on, from);
    for (int r = 0; r < n; r++) {
      if (from[r]) {
        Pieces.take(rest[r], parts[r]);
      }
    }
  }
}
