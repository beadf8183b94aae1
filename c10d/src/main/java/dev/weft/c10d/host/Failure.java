package dev.weft.c10d.host;

/**
 * The end of another rank.
 *
 * @param rank its global rank
 * @param cause its own failure, or what was seen of it
 */
record Failure(int rank, Throwable cause) {
  String describe() {
    return "rank " + rank + " failed: " + cause;
  }
}
