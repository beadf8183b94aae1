package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/**
 * The all-reduce of much data between ranks that can read each other's memory: each rank reduces
 * one part for all, in its own memory, then copies the parts that the others have reduced. Used by
 * one thread at a time.
 */
final class LentAllReduce {
  private final HostGroup group;
  private final SharedSteps steps;
  private final Reducer reducer;
  private final long[] bases;
  private final long[] sources;
  private final boolean[] all;

  LentAllReduce(HostGroup group, SharedSteps steps, Reducer reducer) {
    this.group = group;
    this.steps = steps;
    this.reducer = reducer;
    this.bases = new long[group.size()];
    this.sources = new long[group.size()];
    this.all = new boolean[group.size()];
    java.util.Arrays.fill(all, true);
  }

  /** Reduces in place; all ranks are known to call it. */
  void run(Round round, DType dtype, ReduceOp op, Piece own) {
    long step = steps.next();
    try {
      reduce(round, dtype, op, own, step);
      take(round, own, step + 1);
    } catch (RuntimeException | Error e) {
      steps.giveUp();
      throw e;
    }
    steps.end(2);
  }

  private long start(Piece own, int rank) {
    long n = group.size();
    return Math.min(rank * ((own.bytes() + 64 * n - 1) / (64 * n) * 64), own.bytes());
  }

  /** Nobody but this rank reads its own part, and nobody writes another's part meanwhile. */
  private void reduce(Round round, DType dtype, ReduceOp op, Piece own, long step) {
    int me = group.rank();
    long start = start(own, me);
    Memory.putLong(steps.toWrite(round, step), own.address());
    steps.written(step);
    for (int r = 0; r < bases.length; r++) {
      bases[r] = r == me ? own.address() : Memory.getLong(steps.toRead(round, r, step));
      sources[r] = bases[r] + start;
    }
    steps.reading(round, step, all);
    long bytes = start(own, me + 1) - start;
    reducer.reduce(dtype, op, sources, bytes / dtype.byteSize(), own.address() + start);
    steps.read(step);
  }

  private void take(Round round, Piece own, long step) {
    int me = group.rank();
    steps.written(step);
    for (int i = 1; i < bases.length; i++) {
      int r = (me + i) % bases.length; // each begins with another
      long start = start(own, r);
      long unused = steps.toRead(round, r, step);
      steps.reading(round, step, all);
      Memory.copy(bases[r] + start, own.address() + start, start(own, r + 1) - start);
      steps.notReading();
    }
    steps.read(step);
    steps.awaitTaken(round, step);
  }
}
