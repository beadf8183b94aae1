package dev.weft.c10d;

import dev.weft.tensor.Pending;
import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A collective or point-to-point operation that was launched. Any thread may ask or wait, any
 * number of times. It holds its tensors' memory until it is done, whether or not anyone waits.
 */
public interface Work extends Pending {
  /**
   * Waits until the operation is done, at most its own timeout.
   *
   * @throws DistributedException if it failed: what failed, in which group, who is missing
   */
  @Override
  void await();

  /**
   * Waits at most {@code timeout}; the operation goes on when that has passed.
   *
   * @throws OperationTimeoutException if it is not done by then
   */
  @Override
  void await(Duration timeout);

  /** True when it has ended, well or not. */
  @Override
  boolean isCompleted();

  /** True when it has ended well. */
  boolean isSuccess();

  /**
   * False while it waits to be launched: until its batch ends, or until another thread gets to it.
   * Awaiting it inside its batch is an error.
   */
  default boolean isLaunched() {
    return true;
  }

  /** Why it failed, or null while it runs or when it went well. */
  @Override
  @Nullable Throwable exception();

  /**
   * Done with the output tensors when later work of the waiter will see the result; on a GPU that
   * can be earlier than {@link #completion()}.
   */
  CompletableFuture<List<Tensor>> future();

  /** Done when the data has arrived. */
  CompletableFuture<Void> completion();

  /**
   * Has code called once when it has ended, with the failure or null: at once where it has, else on
   * the thread that ends it.
   */
  default void whenEnded(Consumer<@Nullable Throwable> code) {
    if (isCompleted()) {
      code.accept(exception());
    } else {
      var unused = completion().whenComplete((done, e) -> code.accept(e));
    }
  }

  /** The operation's name, such as {@code all_reduce}. */
  String opName();

  /**
   * The group rank whose data a finished receive got: of interest after a receive from any.
   *
   * @throws IllegalStateException if this is no receive, or not done
   */
  default int sourceRank() {
    throw new IllegalStateException(opName() + " has no source rank; expected a receive");
  }

  /** Its number among the group's collectives, or among the messages of a peer; from 1. */
  long sequenceNumber();
}
