package dev.weft.c10d;

import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Several works as one: done when all are, failed when one is. Thread-safe. */
final class JointWork implements Work {
  private final String opName;
  private final List<Work> parts;

  JointWork(String opName, List<Work> parts) {
    this.opName = opName;
    this.parts = List.copyOf(parts);
  }

  @Override
  public void await() {
    parts.forEach(Work::await);
  }

  @Override
  public void await(Duration timeout) {
    Deadline deadline = Deadline.after(timeout);
    parts.forEach(w -> w.await(deadline.remaining()));
  }

  @Override
  public boolean isCompleted() {
    return parts.stream().allMatch(Work::isCompleted);
  }

  @Override
  public boolean isLaunched() {
    return parts.stream().allMatch(Work::isLaunched);
  }

  @Override
  public boolean isSuccess() {
    return parts.stream().allMatch(Work::isSuccess);
  }

  @Override
  public @Nullable Throwable exception() {
    for (Work w : parts) {
      Throwable e = w.exception();
      if (e != null) {
        return e;
      }
    }
    return null;
  }

  @Override
  public CompletableFuture<List<Tensor>> future() {
    return CompletableFuture.allOf(
            parts.stream().map(Work::future).toArray(CompletableFuture<?>[]::new))
        .thenApply(done -> parts.stream().flatMap(w -> w.future().join().stream()).toList());
  }

  @Override
  public CompletableFuture<Void> completion() {
    return CompletableFuture.allOf(
        parts.stream().map(Work::completion).toArray(CompletableFuture<?>[]::new));
  }

  @Override
  public String opName() {
    return opName;
  }

  /** That of the first part. */
  @Override
  public long sequenceNumber() {
    return parts.isEmpty() ? 0 : parts.get(0).sequenceNumber();
  }

  @Override
  public String toString() {
    return "Work(" + opName + " of " + parts + ")";
  }
}
