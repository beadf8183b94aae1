package dev.weft.c10d;

/**
 * Hears of other ranks' ends; called from any thread, at most once per rank, and must not block.
 */
public interface PeerListener {
  /** A rank failed: everything under way ends with this cause. */
  void peerFailed(int globalRank, Throwable cause);

  /** A rank ended well; what it sent before is still good. */
  void peerLeft(int globalRank);
}
