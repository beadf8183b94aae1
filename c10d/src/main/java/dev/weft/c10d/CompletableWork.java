package dev.weft.c10d;

import dev.weft.tensor.Storage;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * A {@link Work} that a backend completes; for those who write one. Thread-safe. It retains the
 * storages of its tensors when made and releases them once, when it ends.
 */
public class CompletableWork implements Work {
  private final String opName;
  private final long sequenceNumber;
  private final List<Tensor> outputs;
  private final List<Storage> held;
  private final CompletableFuture<List<Tensor>> done = new CompletableFuture<>();

  /**
   * Makes work that is under way.
   *
   * @param opName the operation
   * @param sequenceNumber its number in its group, from 1
   * @param outputs what it writes
   * @param held the storages it reads and writes; each is retained here
   */
  public CompletableWork(
      String opName, long sequenceNumber, List<Tensor> outputs, List<Storage> held) {
    this.opName = opName;
    this.sequenceNumber = sequenceNumber;
    this.outputs = outputs;
    this.held = held;
    for (int i = 0; i < held.size(); i++) {
      Storage unused = held.get(i).retain();
    }
  }

  /** Ends it well. Only the first end counts; true when this was it. */
  public final boolean complete() {
    if (done.isDone()) {
      return false;
    }
    releaseOnce();
    return done.complete(outputs);
  }

  /** Ends it with a failure. Only the first end counts; true when this was it. */
  public final boolean fail(Throwable cause) {
    if (done.isDone()) {
      return false;
    }
    releaseOnce();
    return done.completeExceptionally(cause);
  }

  private boolean released;

  // Before the end is visible, so that a waiter finds the memory released.
  private synchronized void releaseOnce() {
    if (!released) {
      released = true;
      for (int i = 0; i < held.size(); i++) {
        held.get(i).release();
      }
    }
  }

  @Override
  public void await() {
    try {
      List<Tensor> unused = done.get();
    } catch (InterruptedException e) {
      throw interrupted(e);
    } catch (ExecutionException e) {
      throw raise(e);
    }
  }

  @Override
  public void await(Duration timeout) {
    try {
      List<Tensor> unused = done.get(Math.max(0, timeout.toNanos()), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new OperationTimeoutException(
          opName
              + " (seq "
              + sequenceNumber
              + ") is not done after "
              + timeout.toMillis()
              + " ms"
              + describeProgress(),
          e);
    } catch (InterruptedException e) {
      throw interrupted(e);
    } catch (ExecutionException e) {
      throw raise(e);
    }
  }

  /** What it waits for, to follow in a message; empty when nothing is known. */
  protected String describeProgress() {
    return "";
  }

  private DistributedException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    return new DistributedException(
        "interrupted while waiting for " + opName + " (seq " + sequenceNumber + ")", e);
  }

  private static RuntimeException raise(ExecutionException e) {
    Throwable cause = e.getCause();
    if (cause instanceof RuntimeException r) {
      TensorScope.tell(r);
      return r;
    }
    if (cause instanceof Error error) {
      throw error;
    }
    return new DistributedException(String.valueOf(cause), e);
  }

  @Override
  public final boolean isCompleted() {
    return done.isDone();
  }

  @Override
  public final boolean isSuccess() {
    return done.isDone() && !done.isCompletedExceptionally();
  }

  @Override
  public final @Nullable Throwable exception() {
    if (!done.isCompletedExceptionally()) {
      return null;
    }
    try {
      List<Tensor> unused = done.join();
      return null;
    } catch (CompletionException e) {
      return e.getCause();
    }
  }

  @Override
  public final CompletableFuture<List<Tensor>> future() {
    return done.copy();
  }

  @Override
  public final CompletableFuture<Void> completion() {
    return done.thenAccept(x -> {});
  }

  @Override
  public final String opName() {
    return opName;
  }

  @Override
  public final long sequenceNumber() {
    return sequenceNumber;
  }

  /** What it writes. */
  protected final List<Tensor> outputs() {
    return outputs;
  }

  @Override
  public String toString() {
    String state = !isCompleted() ? "under way" : isSuccess() ? "done" : "failed: " + exception();
    return "Work(" + opName + ", seq " + sequenceNumber + ", " + state + ")";
  }
}
