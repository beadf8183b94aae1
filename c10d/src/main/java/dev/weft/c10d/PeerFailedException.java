package dev.weft.c10d;

/**
 * Another rank failed or is gone: its process ended, its connection broke, or its thread threw. The
 * message names the rank; the cause is the peer's own failure where it is known.
 */
public class PeerFailedException extends DistributedException {
  private static final long serialVersionUID = 1L;

  /** Makes an exception without a cause. */
  public PeerFailedException(String message) {
    super(message);
  }

  /** Makes an exception with the failure that led to it. */
  public PeerFailedException(String message, Throwable cause) {
    super(message, cause);
  }
}
