package dev.weft.c10d;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Makes backends of one kind; found through {@link java.util.ServiceLoader}. Called from any
 * thread.
 */
public interface BackendProvider {
  /** The name users give, such as {@code host}. */
  String name();

  /** Other names it answers to. */
  default List<String> aliases() {
    return List.of();
  }

  /** The device types it serves, such as {@code cpu}. */
  Set<String> deviceTypes();

  /** Why it cannot be used here, with what to do about it; null when it can. */
  default @Nullable String unavailableReason() {
    return null;
  }

  /**
   * Who this process is where the backend's own launcher started it, else null. Asked only where
   * the backend can be used and nothing else says who this process is.
   *
   * @param environment the variables to look at
   */
  default @Nullable LaunchedRank launched(Map<String, String> environment) {
    return null;
  }

  /** Makes the backend of a group on the calling rank; only members call it. */
  Backend create(GroupContext group);
}
