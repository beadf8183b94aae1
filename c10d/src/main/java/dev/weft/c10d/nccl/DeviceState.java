package dev.weft.c10d.nccl;

import dev.weft.tensor.cuda.CudaEvent;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * What all communicators of one device share in this process: events to use again, and the lock
 * that gives their launches one order. Thread-safe.
 */
final class DeviceState {
  private static final List<@Nullable DeviceState> ALL = new ArrayList<>();

  /** Held while something is launched, so that all communicators of the device launch in turn. */
  final ReentrantLock launches = new ReentrantLock();

  private final int device;
  private final ArrayDeque<CudaEvent> events = new ArrayDeque<>();

  private DeviceState(int device) {
    this.device = device;
  }

  static DeviceState of(int device) {
    synchronized (ALL) {
      while (ALL.size() <= device) {
        ALL.add(null);
      }
      DeviceState there = ALL.get(device);
      if (there == null) {
        there = new DeviceState(device);
        ALL.set(device, there);
      }
      return there;
    }
  }

  CudaEvent takeEvent() {
    synchronized (events) {
      CudaEvent event = events.pollLast();
      if (event != null) {
        return event;
      }
    }
    return new CudaEvent(device, false);
  }

  /** Recording it again replaces the old mark, also where that is not reached yet. */
  void giveBack(CudaEvent event) {
    synchronized (events) {
      events.addLast(event);
    }
  }
}
