package dev.weft.tensor.memory;

/** Native memory is exhausted; the message says what is held. */
public final class OutOfNativeMemoryError extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Makes the error with its explanation. */
  public OutOfNativeMemoryError(String message) {
    super(message);
  }
}
