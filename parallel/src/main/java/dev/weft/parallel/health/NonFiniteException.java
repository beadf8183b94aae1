package dev.weft.parallel.health;

/** A number that is NaN or infinite; the message names step, rank and module. */
public final class NonFiniteException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  NonFiniteException(String message) {
    super(message);
  }
}
