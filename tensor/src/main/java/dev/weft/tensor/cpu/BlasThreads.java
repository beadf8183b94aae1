package dev.weft.tensor.cpu;

import org.bytedeco.openblas.global.openblas_full;

/**
 * How many threads OpenBLAS uses for a product. Its threads serve one caller at a time, waiting
 * busily: callers side by side stand in each other's way, and are better off without them. What the
 * variables {@code OPENBLAS_NUM_THREADS} and {@code OMP_NUM_THREADS} say is left alone. For the
 * whole process; thread-safe.
 */
public final class BlasThreads {
  private static final boolean GIVEN =
      System.getenv("OPENBLAS_NUM_THREADS") != null || System.getenv("OMP_NUM_THREADS") != null;

  private static int sharers;
  private static boolean used;
  private static int alone;

  private BlasThreads() {}

  /** Callers side by side, until it is closed; by one thread. */
  public static final class Sharing implements AutoCloseable {
    private boolean closed;

    private Sharing() {}

    /** Once all are closed a product may have all threads again. */
    @Override
    public void close() {
      if (!closed) {
        closed = true;
        leave();
      }
    }
  }

  private static synchronized void leave() {
    sharers--;
    if (sharers == 0) {
      restore();
    }
  }

  /** Says that several threads are about to compute products at the same time. */
  public static synchronized Sharing share() {
    sharers++;
    if (sharers == 1) {
      limit();
    }
    return new Sharing();
  }

  /**
   * A thread is about to use OpenBLAS: not before is it asked for anything, since that loads it.
   */
  static synchronized void use() {
    if (!used) {
      used = true;
      if (sharers > 0) {
        limit();
      }
    }
  }

  private static void limit() {
    if (used && !GIVEN) {
      alone = openblas_full.openblas_get_num_threads();
      openblas_full.openblas_set_num_threads(1);
    }
  }

  private static void restore() {
    if (used && !GIVEN) {
      openblas_full.openblas_set_num_threads(alone);
    }
  }
}
