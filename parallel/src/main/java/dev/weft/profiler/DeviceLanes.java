package dev.weft.profiler;

import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What one CUDA device does, from pairs of events around the calls of operators; times are brought
 * to {@link System#nanoTime} by an event at whose end the host looks at its clock. Thread-safe.
 *
 * <p>A collective that NCCL runs on a stream of its own ends where a stream of this class, one a
 * group, has waited for it. It starts when what it waited for is done and the group's collective
 * before it.
 */
final class DeviceLanes implements AutoCloseable {
  private final int device;
  private final Deque<CudaEvent> free = new ArrayDeque<>();
  private final List<Span> open = new ArrayList<>();
  // Of kernels, begun and not finished.
  private final List<Span> running = new ArrayList<>();
  private final Map<String, CudaStream> followers = new HashMap<>();
  private @Nullable CudaEvent anchor;
  private long anchorNanos;

  /** Work of a stream. Times are there after {@link #resolve}, in {@link System#nanoTime}. */
  static final class Span {
    final String lane;
    private final Thread thread = Thread.currentThread();
    private @Nullable CudaEvent begin;
    private @Nullable CudaEvent finish;
    private long reached;
    private long start;
    private long end;

    private Span(String lane) {
      this.lane = lane;
    }

    /** When the stream of the caller came to it: the rank's arrival at a collective. */
    long reached() {
      return reached;
    }

    long start() {
      return start;
    }

    /** 0 where it was not seen to end. */
    long end() {
      return end;
    }
  }

  DeviceLanes(int device) {
    this.device = device;
    restart();
  }

  int device() {
    return device;
  }

  /** Forgets what was there and reads the clocks anew; waits for the current stream. */
  synchronized void restart() {
    open.forEach(this::giveBack);
    open.clear();
    running.clear();
    if (anchor != null) {
      free.add(anchor);
    }
    CudaEvent now = take().record(CudaStream.current(device));
    now.synchronize();
    anchorNanos = System.nanoTime();
    anchor = now;
  }

  private CudaEvent take() {
    CudaEvent event = free.poll();
    return event == null ? new CudaEvent(device, true) : event;
  }

  private void giveBack(Span span) {
    if (span.begin != null) {
      free.add(span.begin);
      span.begin = null;
    }
    if (span.finish != null) {
      free.add(span.finish);
      span.finish = null;
    }
  }

  /** Marks the current stream before a call. */
  synchronized Span begin(@Nullable String group) {
    CudaStream stream = CudaStream.current(device);
    Span span =
        new Span(
            group == null ? stream.toString() : "collectives of " + group + ", cuda:" + device);
    span.begin = take().record(stream);
    open.add(span);
    if (group == null) {
      running.add(span);
    }
    return span;
  }

  /** Marks the current stream after a call. */
  synchronized void finish(Span span) {
    running.remove(span);
    span.finish = take().record(CudaStream.current(device));
  }

  /**
   * Says that the current stream was made to wait for a collective: the kernels whose calls the
   * thread is in begin after it.
   */
  synchronized void waited() {
    CudaStream stream = CudaStream.current(device);
    for (Span span : running) {
      CudaEvent begin = span.begin;
      if (begin != null && span.thread == Thread.currentThread()) {
        begin.record(stream);
      }
    }
  }

  /** Marks the end of a collective on a stream of NCCL's, once it has been launched. */
  synchronized void follow(CommEvent event, Work work) {
    Span span = event.device;
    if (span == null
        || span.begin == null
        || span.finish != null
        || !work.isLaunched()
        || work.exception() != null) {
      return;
    }
    CudaStream follower =
        followers.computeIfAbsent(event.group.name(), name -> CudaStream.create(device, false));
    try (CudaStream.InUse use = follower.use()) {
      // NCCL's future makes the stream that takes its value wait, never the host.
      List<Tensor> unused = work.future().join();
    }
    span.finish = take().record(follower);
  }

  /** Waits for the device and works out the times. */
  synchronized void resolve() {
    CudaEvent zero = anchor;
    if (zero == null) {
      throw new IllegalStateException("the lanes of cuda:" + device + " have been closed");
    }
    Map<String, Long> last = new HashMap<>();
    for (Span span : open) {
      CudaEvent begin = span.begin;
      CudaEvent finish = span.finish;
      if (begin != null && finish != null) {
        finish.synchronize();
        begin.synchronize();
        long start = anchorNanos + (long) (zero.millisecondsTo(begin) * 1e6);
        span.end = anchorNanos + (long) (zero.millisecondsTo(finish) * 1e6);
        span.reached = start;
        span.start = Math.min(span.end, Math.max(start, last.getOrDefault(span.lane, start)));
        last.put(span.lane, span.end);
      }
      giveBack(span);
    }
    open.clear();
  }

  @Override
  public synchronized void close() {
    open.forEach(this::giveBack);
    open.clear();
    if (anchor != null) {
      anchor.close();
      anchor = null;
    }
    free.forEach(CudaEvent::close);
    free.clear();
    followers.values().forEach(CudaStream::close);
    followers.clear();
  }
}
