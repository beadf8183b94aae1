package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGetErrorString;
import static org.bytedeco.cuda.global.nccl.ncclGetLastError;
import static org.bytedeco.cuda.global.nccl.ncclGetVersion;

import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaLibraries;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.javacpp.BytePointer;
import org.jspecify.annotations.Nullable;

/** The NCCL library of this machine: whether it is there, its version, its errors. Thread-safe. */
final class NcclLibrary {
  static final String SONAME = "libnccl.so.2";

  /** The oldest version that is used: it has split, finalize and non-blocking communicators. */
  static final int OLDEST = 21800;

  /** Has {@code ncclCommShrink} and names of communicators. */
  static final int WITH_SHRINK = 22700;

  /** Has {@code ncclAlltoAll}, {@code ncclGather} and {@code ncclScatter}. */
  static final int WITH_ALL_TO_ALL = 22800;

  private static final String WHERE =
      "NCCL comes from a distribution package (libnccl2), NVIDIA's containers, or the Python wheel"
          + " nvidia-nccl-cu13 (no Maven artifact carries it); name the folder of libnccl.so.2, or"
          + " a site-packages that holds the wheel, in WEFT_CUDA_LIB_DIRS";

  private NcclLibrary() {}

  /** What was found when NCCL was first asked for. */
  private static final class Found {
    static final @Nullable String REASON;
    static final int VERSION;

    static {
      int version = 0;
      @Nullable String reason = Cuda.unavailableReason();
      if (reason == null) {
        CudaLibraries.Found library = CudaLibraries.load(SONAME);
        try {
          int[] out = {0};
          int code = ncclGetVersion(out);
          version = out[0];
          reason =
              code != nccl.ncclSuccess
                  ? "ncclGetVersion failed with code " + code
                  : problemOf(version, library);
        } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
          reason = missing(library, String.valueOf(e.getMessage()));
        }
      }
      REASON = reason;
      VERSION = version;
    }
  }

  static @Nullable String problemOf(int version, CudaLibraries.Found library) {
    return version >= OLDEST
        ? null
        : SONAME
            + (library.path() == null ? "" : " (" + library.path() + ")")
            + " is NCCL "
            + text(version)
            + "; "
            + text(OLDEST)
            + " or newer is needed. "
            + WHERE;
  }

  static String missing(CudaLibraries.Found library, String message) {
    if (library.problem() != null) {
      return SONAME + " cannot be loaded: " + library.problem() + ". " + WHERE;
    }
    if (library.path() == null) {
      return SONAME
          + " was not found in "
          + CudaLibraries.folders()
          + " nor by the dynamic loader ("
          + message
          + "). "
          + WHERE;
    }
    return "the NCCL bindings cannot be loaded with " + library.path() + ": " + message;
  }

  /** Why NCCL cannot be used, with what to do about it; null when it can. */
  static @Nullable String unavailableReason() {
    return Found.REASON;
  }

  /** The library's version, such as 22809; 0 when there is none. */
  static int version() {
    return Found.VERSION;
  }

  /** A version as people write it, such as 2.28.9. */
  static String text(int version) {
    return version / 10000 + "." + version / 100 % 100 + "." + version % 100;
  }

  /** The failure of a call; with what NCCL last said of the communicator. */
  static NcclException failure(String call, int code, @Nullable ncclComm communicator) {
    StringBuilder text = new StringBuilder(call).append(" failed: ");
    text.append(string(ncclGetErrorString(code))).append(" (").append(code).append(')');
    String last =
        string(
            communicator == null || communicator.isNull()
                ? ncclGetLastError(null)
                : ncclGetLastError(communicator));
    if (!last.isBlank()) {
      text.append(": ").append(last.strip());
    }
    if (last.contains("Duplicate GPU")) {
      text.append(
          ". NCCL takes one rank a GPU: give each rank a device of its own (Cuda.setDevice,"
              + " LOCAL_RANK). To share a GPU for tests, give each process its own NCCL_HOSTID with"
              + " NCCL_SOCKET_IFNAME=lo and NCCL_IB_DISABLE=1, or, from NCCL 2.30 on, set"
              + " NCCL_MULTI_RANK_GPU_ENABLE=1");
    }
    return new NcclException(text.toString(), code);
  }

  /** Checks a call that belongs to no communicator. */
  static void check(String call, int code) {
    if (code != nccl.ncclSuccess) {
      throw failure(call, code, null);
    }
  }

  private static String string(@Nullable BytePointer p) {
    return p == null || p.isNull() ? "" : p.getString();
  }
}
