package dev.weft.c10d.nccl;

import dev.weft.c10d.DistributedException;

/** A call of NCCL that failed; the message names it and says what NCCL said. */
public final class NcclException extends DistributedException {
  private static final long serialVersionUID = 1L;

  private final int code;

  NcclException(String message, int code) {
    super(message);
    this.code = code;
  }

  /** NCCL's result code. */
  public int code() {
    return code;
  }
}
