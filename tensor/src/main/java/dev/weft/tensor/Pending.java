package dev.weft.tensor;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Work that will fill a storage. Implementations are thread-safe; awaiting twice is harmless.
 *
 * <p>A storage's gate calls {@link #await()} before anything reads or writes its data, so an
 * implementation may also do work there that was put off, such as a re-layout.
 */
public interface Pending {
  /** Returns when the data is there (on a GPU: when later work of this thread will see it). */
  void await();

  /** Like {@link #await()}, but gives up after a time. */
  void await(Duration timeout);

  /** True when the data is there; never blocks. */
  boolean isCompleted();

  /** What went wrong, or null while it runs or when it went well. */
  @Nullable Throwable exception();

  /** Called when the storage is freed and nobody will read the data: lets go of what is held. */
  default void abandon() {}
}
