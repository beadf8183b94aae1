package dev.weft.c10d;

/**
 * The ranks of a world did not find each other; the message says which of them are missing where
 * that is known.
 */
public class RendezvousException extends DistributedException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception without a cause.
   *
   * @param message who waited for whom, where and for how long
   */
  public RendezvousException(String message) {
    super(message);
  }

  /**
   * Makes an exception with the failure that led to it.
   *
   * @param message who waited for whom, where and for how long
   * @param cause the failure below
   */
  public RendezvousException(String message, Throwable cause) {
    super(message, cause);
  }
}
