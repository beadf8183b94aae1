package dev.weft.c10d;

import java.util.Map;

/** What happens when the watchdog finds an operation that is overdue; the modes of PyTorch. */
enum ErrorHandling {
  /** 0: it is logged and dumped. */
  NONE,
  /** 1: all groups are aborted, and the others are told that this rank has failed. */
  TEAR_DOWN,
  /** 2: all groups of this rank are aborted. */
  CLEAN_UP_ONLY,
  /** 3: as 1; in Weft, aborting takes no time of its own that could be skipped. */
  SKIP_CLEAN_UP;

  private static final String[] NAMES = {
    "WEFT_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"
  };

  boolean aborts() {
    return this != NONE;
  }

  boolean tellsOthers() {
    return this == TEAR_DOWN || this == SKIP_CLEAN_UP;
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
}
