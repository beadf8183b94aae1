package dev.weft.profiler;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The lanes of the devices that a rank was seen to use. Thread-safe. */
final class DeviceTable implements AutoCloseable {
  private final Map<Integer, DeviceLanes> lanes = new ConcurrentHashMap<>();

  DeviceLanes of(int device) {
    DeviceLanes there = lanes.get(device);
    return there != null ? there : lanes.computeIfAbsent(device, DeviceLanes::new);
  }

  Collection<DeviceLanes> all() {
    return List.copyOf(lanes.values());
  }

  @Override
  public void close() {
    lanes.values().forEach(DeviceLanes::close);
    lanes.clear();
  }
}
