package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cuLaunchKernel;

import dev.weft.tensor.memory.Memory;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * Packs the arguments of a kernel and launches it, without allocating. Each thread has one: {@link
 * #on} clears it, the argument methods follow in the order of the kernel's parameters, and {@link
 * #run} launches on the device's current stream.
 *
 * <p>Arguments are laid out as the CUDA driver wants them in one buffer: each at a multiple of its
 * own alignment (CUDA driver API, {@code CU_LAUNCH_PARAM_BUFFER_POINTER}).
 */
public final class Launch {
  private static final int CAPACITY = 4096;
  private static final long BUFFER_POINTER = 1;
  private static final long BUFFER_SIZE = 2;

  // Arguments, then their size in bytes.
  private final LongPointer memory = new LongPointer(CAPACITY / 8 + 1);
  private final long buffer = memory.address();
  private final long sizeAt = buffer + CAPACITY;
  // Of this very type: for another the binding passes a pointer to the pointer.
  private final PointerPointer<Pointer> extra = new PointerPointer<>(5);
  private int used;
  private int device;
  private @Nullable CudaStream stream;

  Launch() {
    long list = extra.address();
    Memory.putLong(list, BUFFER_POINTER);
    Memory.putLong(list + 8, buffer);
    Memory.putLong(list + 16, BUFFER_SIZE);
    Memory.putLong(list + 24, sizeAt);
    Memory.putLong(list + 32, 0);
  }

  /** This thread's launch, cleared, for a device and its current stream. */
  public static Launch on(int device) {
    CudaThread thread = CudaThread.bind(device);
    Launch launch = thread.launch();
    launch.used = 0;
    launch.device = device;
    launch.stream = thread.stream(device);
    return launch;
  }

  /** The stream that the kernel will go to. */
  public CudaStream stream() {
    if (stream == null) {
      throw new IllegalStateException("the launch belongs to no device yet; begin with on(device)");
    }
    return stream;
  }

  /** The device it is for. */
  public int device() {
    return device;
  }

  private long place(int size) {
    int at = (used + size - 1) & -size;
    if (at + size > CAPACITY) {
      throw new IllegalStateException("a kernel's arguments take at most " + CAPACITY + " bytes");
    }
    used = at + size;
    return buffer + at;
  }

  /** A pointer or a 64-bit integer. */
  public Launch int64(long value) {
    Memory.putLong(place(8), value);
    return this;
  }

  /** A 32-bit integer. */
  public Launch int32(int value) {
    Memory.putInt(place(4), value);
    return this;
  }

  /** A float. */
  public Launch float32(float value) {
    Memory.putFloat(place(4), value);
    return this;
  }

  /** A double. */
  public Launch float64(double value) {
    Memory.putDouble(place(8), value);
    return this;
  }

  /**
   * The first {@code n} of an array of 64-bit integers by value, padded with zeros to {@code
   * capacity}: a member of a struct, or a struct.
   */
  public Launch int64s(long[] values, int n, int capacity) {
    for (int i = 0; i < capacity; i++) {
      int64(i < n ? values[i] : 0);
    }
    return this;
  }

  /**
   * Makes the next argument begin at a multiple of {@code bytes}: where a struct begins or ends.
   */
  public Launch align(int bytes) {
    used = (used + bytes - 1) & -bytes;
    return this;
  }

  /** Launches in one dimension. */
  public void run(CudaKernel kernel, long blocks, int threads) {
    run(kernel, blocks, 1, 1, threads, 1, 0);
  }

  /**
   * Launches; a grid of no blocks does nothing.
   *
   * @param gridX at most 2^31 - 1
   * @param gridY at most 65535
   * @param gridZ at most 65535
   * @param blockX threads of a block in x
   * @param blockY threads of a block in y
   * @param sharedBytes dynamic shared memory of a block
   */
  public void run(
      CudaKernel kernel,
      long gridX,
      int gridY,
      int gridZ,
      int blockX,
      int blockY,
      int sharedBytes) {
    if (gridX == 0 || gridY == 0 || gridZ == 0) {
      return;
    }
    if (gridX < 0 || gridX > Integer.MAX_VALUE || gridY > 65535 || gridZ > 65535) {
      throw new IllegalArgumentException(
          kernel + ": a grid of " + gridX + " x " + gridY + " x " + gridZ + " is too large");
    }
    Memory.putLong(sizeAt, used);
    int code =
        cuLaunchKernel(
            kernel.function(device, sharedBytes),
            (int) gridX,
            gridY,
            gridZ,
            blockX,
            blockY,
            1,
            sharedBytes,
            stream().handle(),
            (PointerPointer<?>) null,
            extra);
    if (code != 0) {
      CudaCheck.driver("launching " + kernel, code);
    }
  }
}
