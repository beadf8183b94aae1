package dev.weft.c10d.host;

/**
 * The end of another rank, or of the way to all of them.
 *
 * @param rank its global rank, or -1
 * @param cause its own failure, or what was seen of it
 */
record Failure(int rank, Throwable cause) {
  String describe() {
    return rank < 0 ? cause.toString() : "rank " + rank + " failed: " + cause;
  }
}
