package dev.weft.c10d;

import dev.weft.c10d.debug.Variables;
import java.util.Map;

/**
 * What happens when the watchdog finds an operation that is overdue; the modes of PyTorch. Tearing
 * down ends the process where the launcher started it (see {@link TearDown}); elsewhere all groups
 * are aborted, so that their calls throw.
 */
enum ErrorHandling {
  /** 0: it is logged and dumped. */
  NONE,
  /** 1: all groups are aborted, then the process ends. */
  TEAR_DOWN,
  /** 2: all groups of this rank are aborted, and the process goes on. */
  CLEAN_UP_ONLY,
  /** 3: the process ends as it is. */
  SKIP_CLEAN_UP;

  private static final String[] NAMES = {
    "WEFT_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"
  };

  /** Whether the rank's world ends, which the other ranks are told. */
  boolean tearsDown() {
    return this == TEAR_DOWN || this == SKIP_CLEAN_UP;
  }

  /** Whether the groups are aborted: always, where the process cannot be ended instead. */
  boolean aborts(boolean endsProcess) {
    return this == SKIP_CLEAN_UP ? !endsProcess : this != NONE;
  }

  static ErrorHandling fromEnvironment(Map<String, String> environment) {
    for (String name : NAMES) {
      String value = environment.get(name);
      if (value != null && !value.isBlank()) {
        return switch (value.trim()) {
          case "0" -> NONE;
          case "1" -> TEAR_DOWN;
          case "2" -> CLEAN_UP_ONLY;
          case "3" -> SKIP_CLEAN_UP;
          default ->
              throw new IllegalArgumentException(
                  "environment variable " + name + " is '" + value + "'; expected 0, 1, 2 or 3");
        };
      }
    }
    return SKIP_CLEAN_UP;
  }

  /** Whether a rank that tears down tells the others, so that they end with its cause. */
  static boolean propagates(Map<String, String> environment) {
    return new Variables(environment)
        .flag(true, "WEFT_PROPAGATE_ERROR", "TORCH_NCCL_PROPAGATE_ERROR");
  }
}
