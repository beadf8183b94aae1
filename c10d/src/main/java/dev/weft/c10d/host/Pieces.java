package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Pieces of memory by rank, sent and taken, as {@link Round} wants them. Stateless. */
final class Pieces {
  /** Of an algorithm's own steps: those before are of openings and of what ranks tell first. */
  static final int FIRST_PHASE = 8;

  private Pieces() {}

  /** One part of a whole for each of n ranks, nearly equal, in the order of ranks. */
  static Piece[] parts(Piece whole, DType dtype, int n) {
    long numel = whole.bytes() / dtype.byteSize();
    Piece[] out = new Piece[n];
    for (int r = 0; r < n; r++) {
      long start = numel * r / n * dtype.byteSize();
      long end = numel * (r + 1) / n * dtype.byteSize();
      out[r] = new Piece(whole.address() + start, end - start);
    }
    return out;
  }

  static long[] counts(List<Piece> pieces, DType dtype) {
    long[] out = new long[pieces.size()];
    for (int r = 0; r < out.length; r++) {
      out[r] = pieces.get(r).bytes() / dtype.byteSize();
    }
    return out;
  }

  static @Nullable Piece[] toAll(Round round, Piece piece) {
    @Nullable Piece[] all = new @Nullable Piece[round.group().size()];
    Arrays.fill(all, piece);
    return all;
  }

  static @Nullable Piece[] toOne(Round round, int rank, Piece piece) {
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

  static boolean[] only(Round round, int rank) {
    boolean[] one = nobody(round);
    one[rank] = true;
    return one;
  }

  /** The opening of a collective whose data move later. */
  static void open(Round round, Signature call) {
    @Nullable Payload[] unused = round.exchange(call, nothing(round), nobody(round));
  }

  /** Sends pieces, and gives what comes, by rank. */
  static @Nullable Payload[] pass(
      Round round, int phase, @Nullable Piece[] pieces, boolean[] from) {
    @Nullable Payload[] arrived = new @Nullable Payload[round.group().size()];
    round.pass(phase, pieces, from, arrived);
    return arrived;
  }

  /** Reduces this rank's elements and those that came, in the order of ranks. */
  static void reduce(
      Round round, DType dtype, ReduceOp op, Piece own, @Nullable Payload[] others, Piece target) {
    long[] sources = new long[others.length];
    for (int r = 0; r < sources.length; r++) {
      sources[r] = r == round.group().rank() ? own.address() : fitting(others[r], target).address();
    }
    Lanes.reduce(dtype, op, sources, target.bytes() / dtype.byteSize(), target.address());
    for (Payload payload : others) {
      if (payload != null) {
        payload.release();
      }
    }
  }

  /** Takes what came from all other ranks, and this rank's own. */
  static void takeAll(Round round, @Nullable Payload[] arrived, List<Piece> outputs, Piece own) {
    for (int r = 0; r < arrived.length; r++) {
      if (r == round.group().rank()) {
        move(own, outputs.get(r));
      } else {
        take(arrived[r], outputs.get(r));
      }
    }
  }

  static void take(@Nullable Payload payload, Piece target) {
    Payload p = fitting(payload, target);
    p.copyTo(target.address());
    p.release();
  }

  /** What came, where it is as long as what it is for: nothing is written beside that. */
  static Payload fitting(@Nullable Payload payload, Piece target) {
    Payload p = Objects.requireNonNull(payload);
    if (p.bytes() != target.bytes()) {
      throw new DistributedException(
          "a piece of " + p.bytes() + " bytes came; expected " + target.bytes());
    }
    return p;
  }

  static void move(Piece from, Piece to) {
    if (from.address() != to.address()) {
      Memory.copy(from.address(), to.address(), from.bytes());
    }
  }
}
