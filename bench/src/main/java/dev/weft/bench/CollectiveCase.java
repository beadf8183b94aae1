package dev.weft.bench;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/**
 * One operation on float32 vectors of one size, on one rank: what is filled before, what is called,
 * and what must be there after. The data are those of the peers' benchmarks. Used by one thread.
 */
final class CollectiveCase {
  /** What is measured. */
  enum Operation {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_TO_ALL,
    BARRIER,
    PINGPONG;

    /** As in the rows. */
    String label() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  private static final int BLOCK = 4096;

  private final Operation operation;
  private final ProcessGroup group;
  private final int n;
  private final int rank;
  private final int count;
  private final int part;
  private final StridedTensor x;
  private final StridedTensor y;
  private final float[] block = new float[BLOCK];

  /**
   * A case.
   *
   * @param bytes of the whole vector, of which a rank holds a part in some operations
   */
  CollectiveCase(Operation operation, ProcessGroup group, long bytes) {
    this.operation = operation;
    this.group = group;
    this.n = group.size();
    this.rank = group.rank();
    this.count = Math.toIntExact(bytes / 4);
    this.part = count / n;
    this.x = Tensors.empty(DType.FLOAT32, operation == Operation.ALL_GATHER ? part : count);
    this.y = Tensors.empty(DType.FLOAT32, results());
    setUp();
  }

  private int results() {
    return switch (operation) {
      case ALL_GATHER, ALL_TO_ALL -> count;
      case REDUCE_SCATTER -> part;
      default -> 0;
    };
  }

  private void setUp() {
    switch (operation) {
      case ALL_GATHER -> fill(x, 0, part, rank + 1);
      case REDUCE_SCATTER -> {
        for (int i = 0; i < n; i++) {
          fill(x, i * part, part, (rank + 1) * (i + 1));
        }
      }
      case ALL_TO_ALL -> {
        for (int i = 0; i < n; i++) {
          fill(x, i * part, part, rank * 16 + i);
        }
      }
      default -> {}
    }
  }

  /** Whether a call is a way there and back. */
  boolean isRoundTrip() {
    return operation == Operation.PINGPONG;
  }

  /** Puts the operands back, before a repetition. */
  void reset() {
    switch (operation) {
      case ALL_REDUCE -> fill(x, 0, count, rank + 1);
      case BROADCAST -> fill(x, 0, count, rank == 0 ? 7 : 0);
      case PINGPONG -> fill(x, 0, count, rank == 0 ? 5 : 0);
      case BARRIER -> {}
      default -> fill(y, 0, (int) y.numel(), 0);
    }
  }

  void run() {
    Work unused;
    switch (operation) {
      case ALL_REDUCE -> unused = group.allReduce(x, ReduceOp.SUM);
      case ALL_GATHER -> unused = group.allGatherIntoTensor(y, x);
      case REDUCE_SCATTER -> unused = group.reduceScatterTensor(y, x, ReduceOp.SUM);
      case BROADCAST -> unused = group.broadcast(x, 0);
      case ALL_TO_ALL -> unused = group.allToAllSingle(y, x, null, null);
      case BARRIER -> unused = group.barrier();
      case PINGPONG -> {
        if (rank == 0) {
          unused = group.send(x, 1, 0);
          unused = group.recv(x, 1, 0);
        } else if (rank == 1) {
          unused = group.recv(x, 0, 0);
          unused = group.send(x, 0, 0);
        }
      }
    }
  }

  /**
   * Throws if the result is not what it must be.
   *
   * @param calls so many since {@link #reset}
   */
  void check(int calls) {
    float triangle = n * (n + 1) / 2f;
    switch (operation) {
      case ALL_REDUCE -> same(x, 0, count, summed(triangle, calls - 1));
      case ALL_GATHER -> {
        for (int i = 0; i < n; i++) {
          same(y, i * part, part, i + 1);
        }
      }
      case REDUCE_SCATTER -> same(y, 0, part, triangle * (rank + 1));
      case BROADCAST -> same(x, 0, count, 7);
      case ALL_TO_ALL -> {
        for (int i = 0; i < n; i++) {
          same(y, i * part, part, i * 16 + rank);
        }
      }
      case PINGPONG -> {
        if (rank <= 1) {
          same(x, 0, count, 5);
        }
      }
      case BARRIER -> {}
    }
  }

  /** The value after so many more sums over the ranks, rounded as these are. */
  private float summed(float value, int times) {
    float v = value;
    for (int i = 0; i < times; i++) {
      float sum = v;
      for (int r = 1; r < n; r++) {
        sum += v;
      }
      v = sum;
    }
    return v;
  }

  private void fill(StridedTensor t, int start, int length, float value) {
    Arrays.fill(block, value);
    for (int at = 0; at < length; at += BLOCK) {
      Memory.put(t.rawAddress() + 4L * (start + at), block, 0, Math.min(BLOCK, length - at));
    }
  }

  private void same(StridedTensor t, int start, int length, float value) {
    for (int at = 0; at < length; at += BLOCK) {
      int m = Math.min(BLOCK, length - at);
      Memory.get(t.rawAddress() + 4L * (start + at), block, 0, m);
      for (int i = 0; i < m; i++) {
        if (block[i] != value) {
          throw new IllegalStateException(
              operation.label()
                  + " of "
                  + 4L * count
                  + " bytes is wrong on rank "
                  + rank
                  + " at "
                  + (start + at + i)
                  + ": "
                  + block[i]
                  + ", expected "
                  + value);
        }
      }
    }
  }
}
