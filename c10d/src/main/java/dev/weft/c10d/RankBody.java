package dev.weft.c10d;

import org.jspecify.annotations.Nullable;

/**
 * What a rank runs.
 *
 * @param <T> what it returns
 */
@FunctionalInterface
public interface RankBody<T extends @Nullable Object> {
  /** Runs as a rank; what it throws ends the whole world. */
  T run(int rank) throws Exception;

  /** One without a result. */
  @FunctionalInterface
  interface Action {
    /** Runs as a rank; what it throws ends the whole world. */
    void run(int rank) throws Exception;
  }
}
