package dev.weft.c10d;

/**
 * Ranks called a group's collectives in different orders or with arguments that do not fit
 * together. Every rank of the group gets the same message, which names the ranks and what differs.
 */
public class MismatchException extends DistributedException {
  private static final long serialVersionUID = 1L;

  /** Makes an exception without a cause. */
  public MismatchException(String message) {
    super(message);
  }

  /** Makes an exception with the failure that led to it. */
  public MismatchException(String message, Throwable cause) {
    super(message, cause);
  }
}
