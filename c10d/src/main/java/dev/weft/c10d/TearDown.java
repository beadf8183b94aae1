package dev.weft.c10d;

import org.jspecify.annotations.Nullable;

/**
 * The end of a process whose rank cannot go on. Only who started the process may decide that it
 * ends: the launcher's main class says how. Elsewhere a rank's world is aborted, and the program
 * goes on with the exceptions that its calls throw. Thread-safe.
 */
public final class TearDown {
  private static volatile @Nullable End end;

  private TearDown() {}

  /** Ends this process. */
  public interface End {
    /**
     * Ends this process, with the cause where the launcher looks for it; does not return.
     *
     * @param cause why
     */
    void end(Throwable cause);
  }

  /** Says how this process is ended when its rank cannot go on; null for not at all. */
  public static void endProcessBy(@Nullable End how) {
    end = how;
  }

  /** True where this process may be ended. */
  static boolean endsProcess() {
    return end != null;
  }

  /** Ends this process if it may be ended. */
  static void run(Throwable cause) {
    End how = end;
    if (how != null) {
      how.end(cause);
    }
  }
}
