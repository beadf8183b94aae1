package dev.weft.tensor.cuda;

/** How exactly GPUs compute. Settings of the whole process; thread-safe. */
public final class CudaMath {
  private static volatile boolean tf32;

  private CudaMath() {}

  /**
   * Lets products of float32 matrices round their factors to TF32 (10 bits of mantissa), which
   * tensor cores multiply several times faster; sums stay float32. Off at first.
   */
  public static void allowTf32(boolean allow) {
    tf32 = allow;
  }

  /** Whether products of float32 matrices may round their factors to TF32. */
  public static boolean isTf32Allowed() {
    return tf32;
  }
}
