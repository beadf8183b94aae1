package dev.weft.dtensor.checkpoint;

import org.jspecify.annotations.Nullable;

/** A checkpoint cannot be read or written; the message names the file and the tensor. */
public final class CheckpointException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Makes one. */
  public CheckpointException(String message) {
    super(message);
  }

  /** Makes one with its cause. */
  public CheckpointException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
