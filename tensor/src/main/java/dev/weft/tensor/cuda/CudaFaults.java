package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaHostAlloc;
import static org.bytedeco.cuda.global.cudart.cudaHostAllocMapped;
import static org.bytedeco.cuda.global.cudart.cudaHostAllocPortable;

import dev.weft.tensor.memory.Memory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/**
 * What kernels tell the host of: an index that is out of range. A kernel cannot throw; it writes
 * the operator's number, the index and the bound into memory of the host, gives NaN for what the
 * index should have picked, and touches nothing else. The host throws when it next waits for the
 * device or launches a kernel that takes indices. Thread-safe.
 */
final class CudaFaults {
  private static final int MOST_DEVICES = 64;
  private static final int WORDS = 4;
  private static final AtomicLongArray SLOTS = new AtomicLongArray(MOST_DEVICES);
  private static final List<String> OPERATORS = new ArrayList<>();

  private CudaFaults() {}

  /** The number under which kernels report for an operator. */
  static long operator(String name) {
    synchronized (OPERATORS) {
      int at = OPERATORS.indexOf(name);
      if (at < 0) {
        at = OPERATORS.size();
        OPERATORS.add(name);
      }
      return at + 1L;
    }
  }

  /** Where kernels of a device report, for a launch; throws what was reported before. */
  static long address(int device) {
    long slot = SLOTS.get(device);
    if (slot == 0) {
      return make(device);
    }
    check(device);
    return slot;
  }

  private static synchronized long make(int device) {
    long slot = SLOTS.get(device);
    if (slot == 0) {
      CudaThread.bind(device);
      try (PointerPointer<Pointer> out = new PointerPointer<>(1)) {
        CudaCheck.runtime(
            "cudaHostAlloc",
            cudaHostAlloc(out, WORDS * 8L, cudaHostAllocMapped | cudaHostAllocPortable));
        slot = out.get().address();
      }
      for (int i = 0; i < WORDS; i++) {
        Memory.putLong(slot + 8L * i, 0);
      }
      SLOTS.set(device, slot);
    }
    return slot;
  }

  /**
   * Throws what kernels of a device have reported since the last call.
   *
   * @throws IndexOutOfBoundsException naming the operator, the index and the bound
   */
  static void check(int device) {
    long slot = SLOTS.get(device);
    if (slot != 0 && Memory.getLong(slot) != 0) {
      raise(device, slot);
    }
  }

  private static synchronized void raise(int device, long slot) {
    long operator = Memory.getLong(slot);
    if (operator == 0) {
      return;
    }
    long index = Memory.getLong(slot + 8);
    long bound = Memory.getLong(slot + 16);
    Memory.putLong(slot, 0);
    String name;
    synchronized (OPERATORS) {
      name = OPERATORS.get((int) operator - 1);
    }
    throw new IndexOutOfBoundsException(
        name
            + ": index "
            + index
            + " is out of range; expected [0, "
            + (bound - 1)
            + "] (found on cuda:"
            + device
            + " by a call before this one)");
  }
}
