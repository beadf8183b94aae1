package dev.weft.c10d.elastic;

import java.util.List;

/**
 * The failure that ended an attempt, as all agents tell it to their users.
 *
 * @param round the attempt
 * @param rank the rank that failed
 * @param node the number of its agent in that attempt
 * @param host the agent's machine
 * @param pid the rank's process number
 * @param exitCode what its process ended with; 128 and the signal's number if a signal ended it
 * @param ending the same in words
 * @param reason the exception in a line, or empty
 * @param trace the top of its stack, a frame a line, or empty
 * @param lastLines the end of the rank's standard error
 * @param primary false if it only follows from the loss of a peer, as far as its agent can tell
 */
record FirstFailure(
    int round,
    int rank,
    int node,
    String host,
    long pid,
    int exitCode,
    String ending,
    String reason,
    String trace,
    List<String> lastLines,
    boolean primary) {
  /** The failure in half a line. */
  String brief() {
    return "rank %d (node %d) failed: %s%s"
        .formatted(rank, node, ending, reason.isEmpty() ? "" : ", " + reason);
  }
}
