package dev.weft.parallel;

/**
 * What averages gradients over ranks and can put that off, so that the gradients of several
 * backwards are accumulated first. Used by the thread that acts for a rank, on all ranks alike.
 */
public interface GradientSync {
  /** Whether the next backwards average; they do at first. Takes effect when backward runs. */
  void requiresGradientSync(boolean sync);

  /** Whether the next backwards average. */
  boolean requiresGradientSync();

  /** Puts averaging off until it is closed; backward must run inside. */
  default NoSync noSync() {
    boolean before = requiresGradientSync();
    requiresGradientSync(false);
    return () -> requiresGradientSync(before);
  }

  /** Ends {@link #noSync}. */
  interface NoSync extends AutoCloseable {
    @Override
    void close();
  }
}
