package dev.weft.c10d;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The backends of one group by device type, made when first used, so that a group that is never
 * used for a device costs nothing there. Thread-safe.
 */
final class GroupBackends {
  private final @Nullable GroupContext context;
  private final BackendConfig config;
  private final Map<String, Backend> live = new LinkedHashMap<>();
  private @Nullable Throwable failure;
  private boolean closed;

  /** A null context stands for a rank that is no member. */
  GroupBackends(@Nullable GroupContext context, BackendConfig config) {
    this.context = context;
    this.config = config;
  }

  String config() {
    return config.toString();
  }

  synchronized Backend of(String deviceType) {
    GroupContext group = context;
    if (group == null) {
      throw new IllegalStateException("a rank that is no member of a group has no backend there");
    }
    Backend backend = live.get(deviceType);
    if (backend != null) {
      return backend;
    }
    if (closed) {
      throw new IllegalStateException("group '" + group.name() + "' has been destroyed");
    }
    // One backend object serves all device types of its provider.
    BackendProvider provider = config.provider(deviceType, group.name());
    for (String type : config.typesOf(provider)) {
      Backend other = live.get(type);
      if (other != null) {
        live.put(deviceType, other);
        return other;
      }
    }
    Backend made = provider.create(group);
    if (failure != null) {
      made.abort(failure);
    }
    live.put(deviceType, made);
    return made;
  }

  /** The backend for what has no tensor: the host's where there is one. */
  Backend forControl() {
    return of(config.controlType());
  }

  synchronized void abort(Throwable cause) {
    if (failure == null) {
      failure = cause;
    }
    live.values().forEach(b -> b.abort(cause));
  }

  void close(Duration timeout) {
    Backend[] all;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      all = live.values().stream().distinct().toArray(Backend[]::new);
    }
    Deadline deadline = Deadline.after(timeout);
    for (Backend b : all) {
      b.close(deadline.remaining());
    }
  }
}
