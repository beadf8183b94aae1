package dev.weft.c10d.nccl;

import dev.weft.tensor.cuda.CudaStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The works of one communicator that the device may not be done with. Thread-safe. */
final class WorksUnderWay {
  private static final int REAP = 64;

  private final ArrayDeque<NcclWork> works = new ArrayDeque<>();
  // Failed, and perhaps on the device still.
  private final List<NcclWork> failed = new ArrayList<>();

  /** A further work; now and then those that are done are ended. */
  void add(NcclWork work) {
    boolean many;
    synchronized (this) {
      works.addLast(work);
      many = works.size() % REAP == 0;
    }
    if (many) {
      reapSome();
    }
  }

  /**
   * Ends works from the front in one look: those of one stream end in order, so the last of some
   * tells for all of them.
   */
  private void reapSome() {
    List<NcclWork> front = new ArrayList<>(REAP);
    synchronized (this) {
      Iterator<NcclWork> each = works.iterator();
      @Nullable CudaStream of = null;
      while (front.size() < REAP && each.hasNext()) {
        NcclWork w = each.next();
        CudaStream s = w.stream();
        if (of == null) {
          of = s;
        }
        if (s != of) {
          break;
        }
        front.add(w);
      }
    }
    if (!front.isEmpty() && front.get(front.size() - 1).poll()) {
      for (NcclWork w : front) {
        w.finish();
      }
      dropEnded();
    }
  }

  private synchronized void dropEnded() {
    NcclWork w;
    while ((w = works.peekFirst()) != null && w.hasEnded()) {
      NcclWork unused = works.removeFirst();
      if (w.exception() != null) {
        failed.add(w);
      }
    }
  }

  private synchronized List<NcclWork> all() {
    return new ArrayList<>(works);
  }

  /**
   * Ends those that the device is done with.
   *
   * @return the first one that goes on; null where none does
   */
  @Nullable NcclWork look() {
    @Nullable NcclWork first = null;
    for (NcclWork w : all()) {
      if (!w.poll()) {
        first = w;
        break;
      }
    }
    dropEnded();
    letGoOfFailed();
    return first;
  }

  /** Asks the device without the lock: such a call can wait for as long as a kernel runs. */
  private void letGoOfFailed() {
    List<NcclWork> there;
    synchronized (this) {
      there = List.copyOf(failed);
    }
    List<NcclWork> done = there.stream().filter(NcclWork::letGoWhenDone).toList();
    if (!done.isEmpty()) {
      synchronized (this) {
        boolean unused = failed.removeAll(done);
      }
    }
  }

  /** Ends those that the device is done with; false where one goes on. */
  boolean areDone() {
    boolean done = true;
    for (NcclWork w : all()) {
      done &= w.poll();
    }
    dropEnded();
    return done;
  }

  synchronized boolean isEmpty() {
    return works.isEmpty();
  }

  /** Whether the device may be at one of them, as far as has been seen; asks no device. */
  synchronized boolean mayBeOnDevice() {
    return failed.stream().anyMatch(NcclWork::wasLaunched)
        || works.stream().anyMatch(w -> !w.hasEnded());
  }

  /** None of them can end well. */
  void failAll(Throwable cause) {
    for (NcclWork w : all()) {
      if (!w.hasEnded()) {
        w.fail(cause);
      }
    }
  }

  /** NCCL and the device are done with all of them. */
  void letGo() {
    List<NcclWork> ended;
    synchronized (this) {
      ended = new ArrayList<>(works);
      ended.addAll(failed);
      works.clear();
      failed.clear();
    }
    for (NcclWork w : ended) {
      if (w.hasEnded()) {
        w.letGo();
      }
    }
  }
}
