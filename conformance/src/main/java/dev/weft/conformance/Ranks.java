package dev.weft.conformance;

import dev.weft.c10d.LocalWorld;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Runs a case on all ranks of a world of threads and collects what each gave or threw. */
final class Ranks {
  private static final int GRACE_SECONDS = 5;

  private Ranks() {}

  /** What a rank does. */
  interface Body<T> {
    T run(int rank) throws Exception;
  }

  /** A rank's result or exception. */
  record Result<T extends @Nullable Object>(@Nullable T value, @Nullable Throwable error) {
    T get() {
      if (error != null || value == null) {
        throw new CaseRunner.Mismatch("unexpected " + error);
      }
      return value;
    }
  }

  /**
   * Runs the body on every rank. Where some ranks throw and others do not end within a few seconds,
   * the world is aborted.
   */
  static <T> List<Result<T>> run(int world, Body<T> body) {
    return run(LocalWorld.of(world), world, body);
  }

  /** The same in a world with options of its own. */
  static <T> List<Result<T>> run(LocalWorld ranks, int world, Body<T> body) {
    List<@Nullable Result<T>> results =
        Collections.synchronizedList(new ArrayList<>(Collections.nCopies(world, null)));
    CountDownLatch ended = new CountDownLatch(world);
    try {
      ranks.run(
          rank -> {
            try {
              results.set(rank, new Result<>(body.run(rank), null));
            } catch (Exception e) {
              results.set(rank, new Result<>(null, e));
            } finally {
              ended.countDown();
            }
            if (!ended.await(GRACE_SECONDS, TimeUnit.SECONDS)) {
              throw new IllegalStateException("rank " + rank + " ended and others did not");
            }
          });
    } catch (Exception e) {
      for (int r = 0; r < world; r++) {
        if (results.get(r) == null) {
          results.set(r, new Result<>(null, e));
        }
      }
    }
    List<Result<T>> out = new ArrayList<>();
    for (int r = 0; r < world; r++) {
      Result<T> one = results.get(r);
      out.add(one == null ? new Result<>(null, new IllegalStateException("no result")) : one);
    }
    return out;
  }

  /** Checks that every rank refused, with the recorded kind of error. */
  static <T> void requireErrors(
      com.fasterxml.jackson.databind.JsonNode error, List<Result<T>> results) {
    for (int r = 0; r < results.size(); r++) {
      Throwable e = results.get(r).error();
      if (e == null) {
        throw new CaseRunner.Mismatch("rank " + r + ": got a result, want " + error);
      }
      Errors.requireFits("rank " + r, error, e);
    }
  }
}
