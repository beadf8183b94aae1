package dev.weft.c10d;

/**
 * The store's server did not answer in time, though its connections are open: it stands still, or
 * the network does. What was asked for may or may not be there.
 */
public class StoreSilentException extends StoreTimeoutException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param message what was asked, and where
   * @param cause the failure below
   */
  public StoreSilentException(String message, Throwable cause) {
    super(message, cause);
  }
}
