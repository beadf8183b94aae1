package dev.weft.c10d.nccl;

import dev.weft.tensor.Tensor;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The result of an operation that a device may still be busy with: done from the start, it makes
 * the current stream of whoever takes the value, or attaches code to it, wait for the operation
 * first.
 */
final class StreamFuture extends CompletableFuture<List<Tensor>> {
  private final NcclWork work;

  private StreamFuture(NcclWork work) {
    this.work = work;
  }

  static CompletableFuture<List<Tensor>> of(NcclWork work, List<Tensor> outputs) {
    StreamFuture future = new StreamFuture(work);
    Throwable failure = work.exception();
    boolean unused =
        failure == null ? future.complete(outputs) : future.completeExceptionally(failure);
    return future;
  }

  private void order() {
    if (!isCompletedExceptionally()) {
      work.awaitOnStream();
    }
  }

  @Override
  public List<Tensor> get() throws InterruptedException, ExecutionException {
    order();
    return super.get();
  }

  @Override
  public List<Tensor> get(long timeout, TimeUnit unit)
      throws InterruptedException, ExecutionException, TimeoutException {
    order();
    return super.get(timeout, unit);
  }

  @Override
  public List<Tensor> join() {
    order();
    return super.join();
  }

  @Override
  public List<Tensor> getNow(List<Tensor> absent) {
    order();
    return super.getNow(absent);
  }

  @Override
  public <U> CompletableFuture<U> thenApply(Function<? super List<Tensor>, ? extends U> fn) {
    order();
    return super.thenApply(fn);
  }

  @Override
  public CompletableFuture<Void> thenAccept(Consumer<? super List<Tensor>> action) {
    order();
    return super.thenAccept(action);
  }

  @Override
  public CompletableFuture<Void> thenRun(Runnable action) {
    order();
    return super.thenRun(action);
  }

  @Override
  public <U> CompletableFuture<U> thenCompose(
      Function<? super List<Tensor>, ? extends CompletionStage<U>> fn) {
    order();
    return super.thenCompose(fn);
  }

  @Override
  public <U> CompletableFuture<U> handle(
      BiFunction<? super List<Tensor>, @Nullable Throwable, ? extends U> fn) {
    order();
    return super.handle(fn);
  }

  @Override
  public CompletableFuture<List<Tensor>> whenComplete(
      BiConsumer<? super List<Tensor>, ? super @Nullable Throwable> action) {
    order();
    return super.whenComplete(action);
  }
}
