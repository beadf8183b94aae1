package dev.weft.profiler;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;

/**
 * What a collective moves. Stateless.
 *
 * <p>Sizes and factors are those of the nccl-tests' PERFORMANCE.md: the size is that of the tensor
 * in full, and the bus bandwidth is size by time, times what each rank's link must carry of it, so
 * that it can be held against the hardware's rate whatever the number of ranks.
 */
final class Payload {
  private static final String PREFIX = "c10d.";

  private Payload() {}

  static long bytes(long[] shape, DType dtype) {
    return Shapes.numel(shape) * dtype.byteSize();
  }

  /** The size in bytes of a call with {@code outputs} tensors that are written, then read ones. */
  static long bytes(long[][] shapes, DType[] dtypes, int outputs) {
    long out = 0;
    long in = 0;
    for (int i = 0; i < shapes.length; i++) {
      long one = bytes(shapes[i], dtypes[i]);
      if (i < outputs) {
        out += one;
      } else {
        in += one;
      }
    }
    return Math.max(in, out);
  }

  /** Whether a catalogue entry {@code c10d.*} concerns two ranks alone. */
  static boolean isMessage(String op) {
    return op.equals("c10d.send") || op.equals("c10d.recv_");
  }

  /** The part of the size that each rank's link carries. */
  static double busFactor(String op, int ranks) {
    double others = (ranks - 1.0) / ranks;
    if (op.startsWith("all_reduce")) {
      return 2 * others;
    }
    boolean parts =
        op.startsWith("all_gather") || op.startsWith("reduce_scatter") || op.startsWith("all_to_");
    return parts ? others : 1;
  }

  /** The operation of a catalogue entry {@code c10d.*}, by its name in PyTorch's Python. */
  static String operation(String op) {
    String name = op.substring(PREFIX.length());
    if (name.endsWith("_")) {
      name = name.substring(0, name.length() - 1);
    }
    if (name.startsWith("allreduce") || name.startsWith("allgather")) {
      return "all_" + name.substring(3);
    }
    return name.startsWith("alltoall") ? "all_to_all" + name.substring(8) : name;
  }
}
