package dev.weft.c10d;

import org.jspecify.annotations.Nullable;

/**
 * P62: compiled code reads through null and the JVM turns the signal into an exception. A native
 * library that takes SIGSEGV over makes that the end of the process instead.
 */
public final class NullChecks {
  private static final int WARM_UP = 200_000;

  private NullChecks() {}

  private static int length(int @Nullable [] values) {
    return values.length;
  }

  /** Reads through null in compiled code; returns where that is an exception still. */
  public static void survive() {
    int[] one = new int[1];
    long sum = 0;
    for (int i = 0; i < WARM_UP; i++) {
      sum += length(one);
    }
    int caught = 0;
    for (int i = 0; i < 10; i++) {
      try {
        sum += length(null);
      } catch (NullPointerException e) {
        caught++;
      }
    }
    if (caught != 10 || sum != WARM_UP) {
      throw new AssertionError(caught + " of 10 reads through null were exceptions");
    }
  }
}
