package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaHostAlloc;
import static org.bytedeco.cuda.global.cudart.cudaHostAllocDefault;

import dev.weft.tensor.DType;
import dev.weft.tensor.HostStorage;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.StorageCleaner;
import java.util.ArrayDeque;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * Host memory that the device reads and writes by itself, kept for reuse by powers of two and never
 * given back. Thread-safe.
 */
public final class PinnedMemory {
  private static final int SMALLEST = 12;
  private static final ArrayDeque<Block>[] FREE = lists();
  private static final ArrayDeque<Block> BUSY = new ArrayDeque<>();

  private PinnedMemory() {}

  @SuppressWarnings({"unchecked", "rawtypes"}) // an array of a generic type
  private static ArrayDeque<Block>[] lists() {
    ArrayDeque<Block>[] lists = new ArrayDeque[64];
    java.util.Arrays.setAll(lists, i -> new ArrayDeque<>());
    return lists;
  }

  /** A piece of pinned memory. */
  static final class Block {
    final long address;
    final int power;
    // Behind the last use by a device, or null.
    @Nullable CudaEvent event;

    Block(long address, int power) {
      this.address = address;
      this.power = power;
    }
  }

  static Block take(long bytes) {
    int power = Math.max(SMALLEST, 64 - Long.numberOfLeadingZeros(Math.max(1, bytes) - 1));
    synchronized (FREE) {
      takeBack();
      Block b = FREE[power].poll();
      if (b != null) {
        return b;
      }
    }
    CudaThread.bind(CudaThread.current().device());
    try (PointerPointer<Pointer> out = new PointerPointer<>(1)) {
      CudaCheck.runtime(
          "cudaHostAlloc(" + (1L << power) + " B)",
          cudaHostAlloc(out, 1L << power, cudaHostAllocDefault));
      return new Block(out.get().address(), power);
    }
  }

  /** Gives a block back that no device uses. */
  static void giveBack(Block block) {
    synchronized (FREE) {
      FREE[block.power].push(block);
    }
  }

  /** Gives a block back that may be used again when what {@code stream} has been given is done. */
  static void giveBackAfter(Block block, CudaStream stream) {
    CudaEvent event = new CudaEvent(stream.device(), false).record(stream);
    synchronized (FREE) {
      block.event = event;
      BUSY.add(block);
    }
  }

  private static void takeBack() {
    Block b;
    while ((b = BUSY.peek()) != null) {
      CudaEvent event = b.event;
      if (event != null) {
        if (!event.isDone()) {
          return;
        }
        event.close();
        b.event = null;
      }
      BUSY.remove();
      FREE[b.power].push(b);
    }
  }

  /**
   * A CPU tensor in pinned memory, of arbitrary content. Copies between it and a device can go on
   * while the host does; it must not be let go of before they are done.
   */
  public static StridedTensor empty(DType dtype, long... shape) {
    Cuda.require();
    long bytes = Math.multiplyExact(Shapes.numel(Shapes.check(shape)), dtype.byteSize());
    Block block = take(bytes);
    Lender lender = new Lender();
    StorageCleaner.Block unused = StorageCleaner.register(lender, () -> giveBack(block));
    return new StridedTensor(
        HostStorage.borrow(block.address, bytes, lender),
        dtype,
        shape,
        Shapes.contiguousStrides(shape),
        0);
  }

  /** Whether a tensor lies in pinned memory. */
  public static boolean isPinned(StridedTensor t) {
    return t.storage() instanceof HostStorage h && h.lender() instanceof Lender;
  }

  /** Marks a storage's memory as pinned, and keeps it. */
  private static final class Lender {}
}
