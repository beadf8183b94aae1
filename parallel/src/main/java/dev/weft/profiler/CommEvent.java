package dev.weft.profiler;

import dev.weft.c10d.Backend;
import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One collective or message: from its launch to its end, and the waits for it. Thread-safe: it ends
 * on whichever thread the backend has.
 */
final class CommEvent {
  /** A wait of a thread, in {@link System#nanoTime}. */
  record Wait(Thread thread, long start, long end) {}

  final String operation;
  final ProcessGroup group;
  final long[][] shapes;
  final DType[] dtypes;
  final long bytes;
  final boolean async;
  final @Nullable Integer peer;
  final @Nullable Backend backend;
  final long launched;
  final long sequence;
  DeviceLanes.@Nullable Span device;
  private volatile long ended;
  private volatile @Nullable String failure;
  private final List<Wait> waits = new ArrayList<>(1);

  CommEvent(
      OpEvent call,
      ProcessGroup group,
      int outputs,
      boolean async,
      @Nullable Integer peer,
      long sequence,
      @Nullable Backend backend) {
    this.operation = Payload.operation(call.op.name());
    this.group = group;
    this.shapes = call.shapes;
    this.dtypes = call.dtypes;
    this.bytes = Payload.bytes(shapes, dtypes, outputs);
    this.async = async;
    this.peer = peer;
    this.launched = call.start;
    this.sequence = sequence;
    this.backend = backend;
  }

  void end(@Nullable Throwable cause) {
    failure = cause == null ? null : cause.toString();
    ended = System.nanoTime();
  }

  /** When it ended, or 0 while it is under way. */
  long ended() {
    return ended;
  }

  @Nullable String failure() {
    return failure;
  }

  void waited(long start, long end) {
    Wait wait = new Wait(Thread.currentThread(), start, end);
    synchronized (waits) {
      waits.add(wait);
    }
  }

  List<Wait> waits() {
    synchronized (waits) {
      return List.copyOf(waits);
    }
  }
}
