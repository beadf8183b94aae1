package dev.weft.c10d.mpi;

import dev.weft.c10d.DistributedException;
import java.nio.charset.StandardCharsets;

/** Turns results of MPI's functions into exceptions. Stateless. */
final class MpiCalls {
  private static final int MAX_TEXT = 8192;

  private MpiCalls() {}

  /** Throws if a function failed. */
  static void check(String function, int result) {
    if (result != 0) {
      throw new DistributedException(function + " failed: " + text(result));
    }
  }

  private static String text(int code) {
    byte[] text = new byte[MAX_TEXT];
    int[] length = {0};
    if (Mpi.MPI_Error_string(code, text, length) != 0) {
      return "error " + code;
    }
    return new String(text, 0, length[0], StandardCharsets.UTF_8).strip() + " (" + code + ")";
  }

  /** A number of elements as MPI counts. */
  static int count(String what, long n) {
    if (n > Integer.MAX_VALUE) {
      throw new UnsupportedOperationException(
          what
              + " of "
              + n
              + " elements: MPI counts up to "
              + Integer.MAX_VALUE
              + "; split the tensor, or use the host backend");
    }
    return (int) n;
  }
}
