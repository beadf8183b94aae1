package dev.weft.c10d;

/**
 * The base of everything that goes wrong between ranks: a store that cannot be reached, a peer that
 * is gone, an operation that took too long. Bad arguments are {@link IllegalArgumentException}s
 * instead.
 */
public class DistributedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception without a cause.
   *
   * @param message what happened, to whom, and what was expected
   */
  public DistributedException(String message) {
    super(message);
  }

  /**
   * Makes an exception with the failure that led to it.
   *
   * @param message what happened, to whom, and what was expected
   * @param cause the failure below
   */
  public DistributedException(String message, Throwable cause) {
    super(message, cause);
  }
}
