package dev.weft.c10d;

/**
 * A store could not do what was asked: its server is gone, the connection broke, the file cannot be
 * used, or the stored value does not fit the operation. It never means that a peer rank failed.
 */
public class StoreException extends DistributedException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception without a cause.
   *
   * @param message what happened, with the store's address and the key
   */
  public StoreException(String message) {
    super(message);
  }

  /**
   * Makes an exception with the failure that led to it.
   *
   * @param message what happened, with the store's address and the key
   * @param cause the failure below
   */
  public StoreException(String message, Throwable cause) {
    super(message, cause);
  }
}
