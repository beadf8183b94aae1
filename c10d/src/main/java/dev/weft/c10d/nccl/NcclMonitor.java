package dev.weft.c10d.nccl;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks after all communicators of this process on one daemon thread: ends works that the device is
 * done with, asks NCCL for errors, and finds operations that take too long.
 */
final class NcclMonitor {
  private static final Logger LOG = LoggerFactory.getLogger(NcclMonitor.class);
  private static final long INTERVAL_NANOS = 100_000_000;
  private static final long HURRIED_NANOS = 500_000;
  private static final CopyOnWriteArrayList<NcclCommunicator> ALL = new CopyOnWriteArrayList<>();
  private static volatile boolean hurried;
  private static @Nullable Thread thread;

  private NcclMonitor() {}

  static void add(NcclCommunicator communicator) {
    ALL.add(communicator);
    Thread t;
    synchronized (NcclMonitor.class) {
      t = thread;
      if (t == null) {
        t = new Thread(NcclMonitor::watch, "weft-nccl-monitor");
        t.setDaemon(true);
        thread = t;
        t.start();
      }
    }
    LockSupport.unpark(t);
  }

  static void remove(NcclCommunicator communicator) {
    boolean unused = ALL.remove(communicator);
  }

  static List<NcclCommunicator> communicators() {
    return List.copyOf(ALL);
  }

  /** Somebody waits for the end of a work: looks more often until all are done. */
  static void hurry() {
    hurried = true;
    Thread t;
    synchronized (NcclMonitor.class) {
      t = thread;
    }
    if (t != null) {
      LockSupport.unpark(t);
    }
  }

  private static void watch() {
    while (true) {
      boolean busy = false;
      for (NcclCommunicator c : ALL) {
        try {
          busy |= c.look();
        } catch (RuntimeException e) {
          // Such as a device whose context is broken: no later look would do better.
          LOG.warn("{} is no longer looked after", c, e);
          c.broken(e);
        }
      }
      if (!busy) {
        hurried = false;
      }
      if (ALL.isEmpty()) {
        LockSupport.park(NcclMonitor.class);
      } else {
        LockSupport.parkNanos(NcclMonitor.class, hurried ? HURRIED_NANOS : INTERVAL_NANOS);
      }
    }
  }
}
