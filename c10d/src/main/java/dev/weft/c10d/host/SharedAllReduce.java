package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/**
 * The all-reduce of much data: piece by piece, each rank reduces one part of it for all. A rank
 * puts the others' parts of a piece into its slot, reduces its own part of the piece before from
 * everybody's slots, and takes the reduced parts of the one before that. Used by one thread at a
 * time.
 */
final class SharedAllReduce {
  private final HostGroup group;
  private final SharedSteps steps;
  private final Reducer reducer;
  private final int slotBytes;
  private final long[] sources;

  SharedAllReduce(SharedLayout layout, HostGroup group, SharedSteps steps, Reducer reducer) {
    this.group = group;
    this.steps = steps;
    this.reducer = reducer;
    this.slotBytes = layout.slotBytes();
    this.sources = new long[group.size()];
  }

  /** The data and how they are cut: pieces of so many bytes, of which each rank has a part. */
  private record Cut(Piece own, long pieceBytes, int ranks) {
    long pieces() {
      return (own.bytes() + pieceBytes - 1) / pieceBytes;
    }

    long length(long piece) {
      return Math.min(pieceBytes, own.bytes() - piece * pieceBytes);
    }

    /** The room for a part. */
    long part(long piece) {
      return aligned((length(piece) + ranks - 1) / ranks);
    }

    long start(long piece, int rank) {
      return Math.min(rank * part(piece), length(piece));
    }

    long bytes(long piece, int rank) {
      return start(piece, rank + 1) - start(piece, rank);
    }

    long address(long piece, int rank) {
      return own.address() + piece * pieceBytes + start(piece, rank);
    }
  }

  private static long aligned(long bytes) {
    return (bytes + 63) / 64 * 64;
  }

  /**
   * Gives the first piece, before it is known whether all ranks call the same: who knows that has
   * the piece as well. To be followed by {@link #run}, unless the group fails.
   */
  void begin(Round round, Piece own) {
    give(round, cut(own), 0, steps.next());
  }

  private Cut cut(Piece own) {
    int n = group.size();
    return new Cut(own, n * (slotBytes / n / 64 * 64L), n);
  }

  /** Reduces in place; all ranks are known to call it. */
  void run(Round round, DType dtype, ReduceOp op, Piece own) {
    Cut cut = cut(own);
    long pieces = cut.pieces();
    long first = steps.next();
    for (long p = 0; p <= pieces; p++) {
      if (p + 1 < pieces) {
        give(round, cut, p + 1, given(first, p + 1));
      }
      if (p < pieces) {
        reduce(round, cut, p, first, dtype, op);
      }
      if (p > 0) {
        take(round, cut, p - 1, reduced(first, p - 1));
      }
    }
    steps.end(2 * pieces + 1);
  }

  /** The step in which a piece is given; between those in which pieces before are reduced. */
  private static long given(long first, long piece) {
    return first + (piece == 0 ? 0 : 2 * piece - 1);
  }

  /** The step in which a piece is reduced. */
  private static long reduced(long first, long piece) {
    return first + 2 * piece + 2;
  }

  private void give(Round round, Cut cut, long piece, long step) {
    long slot = steps.toWrite(round, step);
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()) {
        Memory.copy(cut.address(piece, r), slot + cut.start(piece, r), cut.bytes(piece, r));
      }
    }
    steps.written(step);
  }

  private void reduce(Round round, Cut cut, long piece, long first, DType dtype, ReduceOp op) {
    int me = group.rank();
    long start = cut.start(piece, me);
    for (int r = 0; r < group.size(); r++) {
      sources[r] =
          r == me ? cut.address(piece, me) : steps.toRead(round, r, given(first, piece)) + start;
    }
    long bytes = cut.bytes(piece, me);
    long target = cut.address(piece, me);
    reducer.reduce(dtype, op, sources, bytes / dtype.byteSize(), target);
    steps.read(given(first, piece));
    Memory.copy(target, steps.toWrite(round, reduced(first, piece)), bytes);
    steps.written(reduced(first, piece));
  }

  private void take(Round round, Cut cut, long piece, long step) {
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()) {
        Memory.copy(steps.toRead(round, r, step), cut.address(piece, r), cut.bytes(piece, r));
      }
    }
    steps.read(step);
  }
}
