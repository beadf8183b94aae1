package dev.weft.profiler;

import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A work whose waits are noted. As thread-safe as the work inside. */
final class ObservedWork implements Work {
  private final Work work;
  private final CommEvent event;
  private final @Nullable DeviceLanes device;

  ObservedWork(Work work, CommEvent event, @Nullable DeviceLanes device) {
    this.work = work;
    this.event = event;
    this.device = device;
  }

  @Override
  public void await() {
    observe(work::await);
  }

  @Override
  public void await(Duration timeout) {
    observe(() -> work.await(timeout));
  }

  private void observe(Runnable wait) {
    if (device != null) {
      device.follow(event, work);
    }
    long start = System.nanoTime();
    try {
      wait.run();
    } finally {
      event.waited(start, System.nanoTime());
      if (device != null) {
        device.waited();
      }
    }
  }

  @Override
  public boolean isCompleted() {
    return work.isCompleted();
  }

  @Override
  public boolean isLaunched() {
    return work.isLaunched();
  }

  @Override
  public boolean isSuccess() {
    return work.isSuccess();
  }

  @Override
  public @Nullable Throwable exception() {
    return work.exception();
  }

  @Override
  public CompletableFuture<List<Tensor>> future() {
    return work.future();
  }

  @Override
  public CompletableFuture<Void> completion() {
    return work.completion();
  }

  @Override
  public void whenEnded(Consumer<@Nullable Throwable> code) {
    work.whenEnded(code);
  }

  @Override
  public void abandon() {
    work.abandon();
  }

  @Override
  public String opName() {
    return work.opName();
  }

  @Override
  public int sourceRank() {
    return work.sourceRank();
  }

  @Override
  public long sequenceNumber() {
    return work.sequenceNumber();
  }

  @Override
  public String toString() {
    return work.toString();
  }
}
