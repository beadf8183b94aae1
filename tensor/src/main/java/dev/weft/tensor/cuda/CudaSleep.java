package dev.weft.tensor.cuda;

/** Keeps a stream busy without using its device, for tests of what waits for what. Any thread. */
public final class CudaSleep {
  private static final CudaKernel SPIN = KernelModule.of("spin.cu").kernel("spin");

  private CudaSleep() {}

  /** Has the current stream of a device do nothing for so many nanoseconds. */
  public static void nanos(int device, long nanoseconds) {
    Launch.on(device).int64(nanoseconds).run(SPIN, 1, 1);
  }
}
