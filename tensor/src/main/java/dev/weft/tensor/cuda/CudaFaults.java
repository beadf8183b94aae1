package dev.weft.tensor.cuda;

import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Positions out of range that kernels came across. A kernel cannot throw: it writes a record into
 * memory of the host ({@code report_fault} of {@code common.cuh}) and leaves the element out. The
 * exception comes at the next operator that reads positions on this device, or when the host waits
 * for one of its streams, whichever is first. Thread-safe.
 */
public final class CudaFaults {
  private static final int RECORD_BYTES = 16;
  private static final List<String> OPERATORS = new CopyOnWriteArrayList<>(List.of("none"));
  private static final Object LOCK = new Object();
  // By device; 0 where no kernel could have reported.
  private static volatile long[] records = new long[0];

  private CudaFaults() {}

  /** The number by which kernels name an operator; to be asked for once. */
  static int code(String operator) {
    synchronized (LOCK) {
      OPERATORS.add(operator);
      return OPERATORS.size() - 1;
    }
  }

  /** Where kernels on a device write their record; what was written before is thrown first. */
  static long record(int device) {
    long[] all = records;
    if (device < all.length && all[device] != 0) {
      check(device);
      return all[device];
    }
    return allocate(device);
  }

  private static long allocate(int device) {
    synchronized (LOCK) {
      long[] all = Arrays.copyOf(records, Math.max(records.length, device + 1));
      if (all[device] == 0) {
        all[device] = PinnedMemory.take(RECORD_BYTES).address;
        Memory.putLong(all[device], 0);
        records = all;
      }
      return all[device];
    }
  }

  /**
   * Throws what kernels that are done have reported.
   *
   * @throws IndexOutOfBoundsException naming the operator, the position and what was expected
   */
  static void check(int device) {
    long[] all = records;
    if (device >= all.length || all[device] == 0 || Memory.getLong(all[device]) == 0) {
      return;
    }
    long first;
    long index;
    synchronized (LOCK) {
      first = Memory.getLong(all[device]);
      index = Memory.getLong(all[device] + 8);
      Memory.putLong(all[device], 0);
    }
    if (first != 0) {
      long size = first & 0xffff_ffff_ffffL;
      throw new IndexOutOfBoundsException(
          OPERATORS.get((int) (first >>> 48))
              + ": index "
              + index
              + " is out of range; expected [0, "
              + (size - 1)
              + "] (found on device cuda:"
              + device
              + " by an earlier call)");
    }
  }
}
