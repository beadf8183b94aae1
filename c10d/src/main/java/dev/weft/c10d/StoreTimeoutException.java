package dev.weft.c10d;

/**
 * What was awaited in a store did not come in time; the message names the keys, the milliseconds
 * and the store.
 */
public class StoreTimeoutException extends StoreException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception without a cause.
   *
   * @param message what was awaited, where and for how long
   */
  public StoreTimeoutException(String message) {
    super(message);
  }

  /**
   * Makes an exception with the failure that led to it.
   *
   * @param message what was awaited, where and for how long
   * @param cause the failure below
   */
  public StoreTimeoutException(String message, Throwable cause) {
    super(message, cause);
  }
}
