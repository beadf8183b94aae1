package dev.weft.funcol;

import dev.weft.c10d.Work;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The result of a functional collective: a plain tensor whose storage is gated until the data is
 * there. Whatever reads it first, an operator, {@code toNd4j}, printing or {@code item}, waits;
 * views of it wait as well. Any thread may ask for its state.
 */
public final class AsyncCollectiveTensor extends StridedTensor {
  private final Deferred deferred;

  private AsyncCollectiveTensor(StridedTensor over, Deferred deferred) {
    super(over.storage(), over.dtype(), over.shape(), over.strides(), over.offset());
    this.deferred = deferred;
  }

  /**
   * Gates a tensor that a running collective fills.
   *
   * @param output the result; contiguous, not yet read by anyone
   * @param work the collective
   * @param relayout copies from {@code staging} into the result when the collective is done, or
   *     null where the collective writes the result itself
   * @param staging tensors to keep until then
   */
  public static AsyncCollectiveTensor of(
      StridedTensor output,
      Work work,
      @Nullable Runnable relayout,
      List<? extends StridedTensor> staging) {
    Deferred deferred = new Deferred(work, relayout, List.copyOf(staging));
    output.storage().setPending(deferred);
    return new AsyncCollectiveTensor(output, deferred);
  }

  /** A part of the same storage, which shows the same work. */
  AsyncCollectiveTensor part(StridedTensor layout) {
    return new AsyncCollectiveTensor(layout, deferred);
  }

  /** True when reading will not wait for other ranks. */
  public boolean isCompleted() {
    return deferred.isCompleted();
  }

  /** Waits for the data and returns the tensor as a plain one. */
  public Tensor await() {
    storage().await();
    return alias();
  }

  /** The collective under way. */
  public Work work() {
    return deferred.work();
  }
}
