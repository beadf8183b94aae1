package dev.weft.tensor.cuda;

/** A CUDA call failed; the message names the call, the code and what CUDA says of it. */
public final class CudaException extends RuntimeException {
  private static final long serialVersionUID = 1;

  private final int code;

  CudaException(String message, int code) {
    super(message);
    this.code = code;
  }

  /** The code of the library that failed; its own numbering. */
  public int code() {
    return code;
  }
}
