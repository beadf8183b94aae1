package dev.weft.c10d;

/**
 * An operation did not end in time; the message names it, its group, its sequence number and the
 * ranks that did not arrive.
 */
public class OperationTimeoutException extends DistributedException {
  private static final long serialVersionUID = 1L;

  /** Makes an exception without a cause. */
  public OperationTimeoutException(String message) {
    super(message);
  }

  /** Makes an exception with the failure that led to it. */
  public OperationTimeoutException(String message, Throwable cause) {
    super(message, cause);
  }
}
