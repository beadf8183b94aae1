package dev.weft.bench;

import dev.weft.tensor.TensorScope;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Times calls on the calling thread, after the compiler has had its time. */
final class Timing {
  private static final int ROUNDS = 7;
  private static final @Nullable CompilationMXBean COMPILER =
      ManagementFactory.getCompilationMXBean(); // null with -Xint
  private static final long QUIET_NANOS = 200_000_000;

  /** How many times as long as asked for a warm-up may go on. */
  private static final int LIMIT = 10;

  private final int calls;
  private final long warmUpNanos;

  /** Microseconds a call. */
  record Result(double best, double median) {
    static Result of(double[] micros) {
      double[] sorted = micros.clone();
      Arrays.sort(sorted);
      int n = sorted.length;
      double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
      return new Result(sorted[0], median);
    }
  }

  /**
   * A way to measure.
   *
   * @param calls in a round
   * @param warmUpMillis how long calls are repeated first
   */
  Timing(int calls, long warmUpMillis) {
    this.calls = calls;
    this.warmUpNanos = warmUpMillis * 1_000_000;
  }

  /**
   * The same call again and again. What it makes is let go within the measured time, at the end of
   * each round's scope.
   */
  Result warm(Supplier<?> call, int divisor) {
    int n = Math.max(1, calls / divisor);
    warmUp(call, Math.min(n, 200));
    double[] micros = new double[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
      micros[r] = round(call, n);
    }
    return Result.of(micros);
  }

  /**
   * Repeats calls for the time that was asked for, and on until the compiler has been done with
   * nothing new for a while: on a busy machine it gets too little time to keep up.
   */
  private void warmUp(Supplier<?> call, int n) {
    long begin = System.nanoTime();
    long compiled = compiledMillis();
    long quietSince = begin;
    long quiet = Math.min(QUIET_NANOS, warmUpNanos);
    while (true) {
      double unused = round(call, n);
      long now = System.nanoTime();
      long spent = now - begin;
      long total = compiledMillis();
      if (total != compiled) {
        compiled = total;
        quietSince = now;
      }
      boolean settled = spent >= warmUpNanos && now - quietSince >= quiet;
      if (settled || spent >= LIMIT * warmUpNanos) {
        return;
      }
    }
  }

  private static long compiledMillis() {
    return COMPILER == null ? 0 : COMPILER.getTotalCompilationTime();
  }

  // Read by nobody; keeps results from being optimised away.
  private static volatile Object sink = "";

  private static double round(Supplier<?> call, int n) {
    long start = System.nanoTime();
    try (TensorScope scope = TensorScope.open()) {
      Object last = sink;
      for (int i = 0; i < n; i++) {
        last = call.get();
      }
      sink = last;
    }
    return (System.nanoTime() - start) / 1e3 / n;
  }

  /**
   * First calls: each has arguments that were never seen before.
   *
   * @param arguments for an index
   * @param first the first index
   * @param warmUp how many others come before those that are measured
   * @param count how many are measured
   */
  static <T> Result cold(
      IntFunction<T> arguments, Function<T, ?> call, int first, int warmUp, int count) {
    int index = first;
    for (int i = 0; i < warmUp; i++) {
      try (TensorScope scope = TensorScope.open()) {
        sink = call.apply(arguments.apply(index++));
      }
    }
    double[] micros = new double[count];
    try (TensorScope scope = TensorScope.open()) {
      for (int i = 0; i < count; i++) {
        T argument = arguments.apply(index++);
        long start = System.nanoTime();
        sink = call.apply(argument);
        micros[i] = (System.nanoTime() - start) / 1e3;
      }
    }
    return Result.of(micros);
  }
}
