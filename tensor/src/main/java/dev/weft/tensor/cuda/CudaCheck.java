package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaGetErrorName;
import static org.bytedeco.cuda.global.cudart.cudaGetErrorString;

import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nvrtc;
import org.bytedeco.javacpp.BytePointer;

/** Turns the codes of CUDA's libraries into exceptions that name the call. Stateless. */
public final class CudaCheck {
  private CudaCheck() {}

  /** Checks a call of the runtime API. */
  public static void runtime(String call, int code) {
    if (code != 0) {
      throw failure(call, code);
    }
  }

  private static CudaException failure(String call, int code) {
    // Clears an error that is not sticky, so that the next call does not report it again.
    int unused = cudart.cudaGetLastError();
    return new CudaException(
        call
            + " failed: "
            + text(cudaGetErrorName(code))
            + " ("
            + code
            + "): "
            + text(cudaGetErrorString(code)),
        code);
  }

  /** Checks a call of the driver API. */
  public static void driver(String call, int code) {
    if (code != 0) {
      // The numbers of the driver and the runtime agree.
      throw failure(call, code);
    }
  }

  /** Checks a call of NVRTC. */
  public static void nvrtc(String call, int code) {
    if (code != 0) {
      throw new CudaException(
          call + " failed: " + text(nvrtc.nvrtcGetErrorString(code)) + " (" + code + ")", code);
    }
  }

  /** Checks a call of cuBLAS. */
  public static void blas(String call, int code) {
    if (code != 0) {
      throw new CudaException(
          call + " failed: " + text(cublas.cublasGetStatusString(code)) + " (" + code + ")", code);
    }
  }

  private static String text(BytePointer p) {
    return p == null || p.isNull() ? "unknown" : p.getString();
  }
}
