package dev.weft.c10d;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The backends of one group by device type, made when first used, so that a group that is never
 * used for a device costs nothing there. Thread-safe.
 */
final class GroupBackends {
  private final @Nullable GroupContext context;
  private final BackendConfig config;
  private final Map<String, Backend> live = new LinkedHashMap<>();
  // Making one may take long (connecting), and must not hold up an abort.
  private final Object creation = new Object();
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

  Backend of(String deviceType) {
    Backend there = find(deviceType);
    if (there != null) {
      return there;
    }
    synchronized (creation) {
      there = find(deviceType);
      return there != null ? there : create(deviceType);
    }
  }

  private @Nullable Backend find(String deviceType) {
    GroupContext group = context;
    if (group == null) {
      throw new IllegalStateException("a rank that is no member of a group has no backend there");
    }
    synchronized (live) {
      Backend backend = live.get(deviceType);
      if (backend == null && closed) {
        throw new IllegalStateException("group " + group.describe() + " has been destroyed");
      }
      return backend;
    }
  }

  private Backend create(String deviceType) {
    GroupContext group = Objects.requireNonNull(context);
    // One backend object serves all device types of its provider.
    BackendProvider provider = config.provider(deviceType, group.name());
    Backend made = null;
    for (String type : config.typesOf(provider)) {
      Backend other = find(type);
      made = other == null ? made : other;
    }
    if (made == null) {
      made = provider.create(group);
    }
    Throwable earlier;
    boolean late;
    synchronized (live) {
      live.put(deviceType, made);
      earlier = failure;
      late = closed;
    }
    if (earlier != null) {
      made.abort(earlier);
    }
    if (late) {
      made.close(Duration.ZERO);
    }
    return made;
  }

  /** The backend of a device type, if it has been made. */
  @Nullable Backend made(String deviceType) {
    synchronized (live) {
      return live.get(deviceType);
    }
  }

  /** Takes a backend that was made from another group's. */
  void adopt(String deviceType, Backend backend) {
    synchronized (live) {
      if (live.put(deviceType, backend) != null) {
        throw new IllegalStateException("the group has a backend for " + deviceType + " already");
      }
    }
  }

  @Nullable GroupContext context() {
    return context;
  }

  /** The device types that it has backends for. */
  Set<String> deviceTypes() {
    return config.byDeviceType().keySet();
  }

  /** The backend for what has no tensor: the host's where there is one. */
  Backend forControl() {
    return of(config.controlType());
  }

  void abort(Throwable cause) {
    List<Backend> all;
    synchronized (live) {
      if (failure == null) {
        failure = cause;
      }
      all = live.values().stream().distinct().toList();
    }
    all.forEach(b -> b.abort(cause));
  }

  void close(Duration timeout) {
    Backend[] all;
    synchronized (live) {
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
