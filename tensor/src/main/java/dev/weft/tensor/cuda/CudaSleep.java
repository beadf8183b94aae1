package dev.weft.tensor.cuda;

/** Keeps a stream busy without using its device, for tests of what waits for what. Any thread. */
public final class CudaSleep {
  private static final CudaKernel SPIN = KernelModule.of("spin.cu").kernel("spin");

  private CudaSleep() {}

  /** Has the current stream of a device do nothing for so many clock cycles of the device. */
  public static void cycles(int device, long cycles) {
    Launch.on(device).int64(cycles).run(SPIN, 1, 1);
  }
}
