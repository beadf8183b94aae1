package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cublas.CUBLAS_COMPUTE_32F;
import static org.bytedeco.cuda.global.cublas.CUBLAS_COMPUTE_32F_FAST_TF32;
import static org.bytedeco.cuda.global.cublas.CUBLAS_COMPUTE_64F;
import static org.bytedeco.cuda.global.cublas.CUBLAS_DEFAULT_MATH;
import static org.bytedeco.cuda.global.cublas.CUBLAS_GEMM_DEFAULT;
import static org.bytedeco.cuda.global.cublas.CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
import static org.bytedeco.cuda.global.cublas.CUBLAS_OP_N;
import static org.bytedeco.cuda.global.cublas.CUBLAS_OP_T;
import static org.bytedeco.cuda.global.cublas.cublasCreate_v2;
import static org.bytedeco.cuda.global.cublas.cublasGemmEx;
import static org.bytedeco.cuda.global.cublas.cublasGemmStridedBatchedEx;
import static org.bytedeco.cuda.global.cublas.cublasSetMathMode;
import static org.bytedeco.cuda.global.cublas.cublasSetStream_v2;
import static org.bytedeco.cuda.global.cublas.cublasSetWorkspace_v2;
import static org.bytedeco.cuda.global.cudart.CUDA_R_16BF;
import static org.bytedeco.cuda.global.cudart.CUDA_R_16F;
import static org.bytedeco.cuda.global.cudart.CUDA_R_32F;
import static org.bytedeco.cuda.global.cudart.CUDA_R_64F;
import static org.bytedeco.cuda.global.cudart.cudaFree;
import static org.bytedeco.cuda.global.cudart.cudaMalloc;

import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.jspecify.annotations.Nullable;

/**
 * Matrix products of a device by cuBLAS. There is one handle per device, made when first used; a
 * lock guards it, and calls allocate nothing. Results do not depend on what else runs: each stream
 * has a workspace of its own.
 */
final class CudaBlas {
  private static final int MOST_DEVICES = 64;
  private static final long WORKSPACE_BYTES = 32L << 20;
  private static final int MOST_WORKSPACES = 8;
  private static final AtomicReferenceArray<CudaBlas> DEVICES =
      new AtomicReferenceArray<>(MOST_DEVICES);

  private final int device;
  private final cublasContext handle = new cublasContext();
  private final RawPointer a = new RawPointer();
  private final RawPointer b = new RawPointer();
  private final RawPointer c = new RawPointer();
  // alpha and beta, as float or double.
  private final LongPointer factors = new LongPointer(2);
  private final RawPointer alphaAt = new RawPointer(factors.address());
  private final RawPointer betaAt = new RawPointer(factors.address() + 8);
  private @Nullable CudaStream stream;
  // By stream id, least recently used first.
  private final Map<Integer, Long> workspaces = new LinkedHashMap<>(16, 0.75f, true);

  private CudaBlas(int device) {
    this.device = device;
    CudaLibraries.Found lt = CudaLibraries.load("libcublasLt.so.13");
    CudaLibraries.Found blas = CudaLibraries.load("libcublas.so.13");
    CudaThread.bind(device);
    try {
      CudaCheck.blas("cublasCreate", cublasCreate_v2(handle));
    } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
      throw new UnsupportedOperationException(
          "matrices cannot be multiplied on a GPU: libcublas.so.13 cannot be loaded ("
              + e.getMessage()
              + "; "
              + lt
              + "; "
              + blas
              + "); name its folder in WEFT_CUDA_LIB_DIRS",
          e);
    }
    CudaCheck.blas(
        "cublasSetMathMode",
        cublasSetMathMode(
            handle, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  }

  /** The one of a device. */
  static CudaBlas of(int device) {
    CudaBlas blas = DEVICES.get(device);
    return blas != null ? blas : make(device);
  }

  private static synchronized CudaBlas make(int device) {
    CudaBlas blas = DEVICES.get(device);
    if (blas == null) {
      Cuda.check(device);
      blas = new CudaBlas(device);
      DEVICES.set(device, blas);
    }
    return blas;
  }

  /** Whether cuBLAS multiplies matrices of a dtype. */
  static boolean takes(DType dtype) {
    return dtype.isFloatingPoint();
  }

  private static int type(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> CUDA_R_64F;
      case FLOAT32 -> CUDA_R_32F;
      case FLOAT16 -> CUDA_R_16F;
      case BFLOAT16 -> CUDA_R_16BF;
      default -> throw new IllegalArgumentException("cuBLAS does not multiply " + dtype);
    };
  }

  /**
   * Row-major c[m, n] = alpha op(a) op(b) + beta c in {@code batch} matrices, on the device's
   * current stream.
   *
   * @param dtype of a and b
   * @param outDType of c
   * @param ta whether a lies transposed, as [k, m]
   * @param tb whether b lies transposed, as [n, k]
   * @param lda elements from a row of a, as it lies, to the next
   * @param strideA elements from a matrix to the next; 0 for one matrix for all
   */
  synchronized void gemm(
      DType dtype,
      DType outDType,
      boolean ta,
      boolean tb,
      int m,
      int n,
      int k,
      double alpha,
      long aAddress,
      int lda,
      long strideA,
      long bAddress,
      int ldb,
      long strideB,
      double beta,
      long cAddress,
      int ldc,
      long strideC,
      int batch) {
    CudaThread thread = CudaThread.bind(device);
    CudaStream current = thread.stream(device);
    if (current != stream) {
      use(current);
    }
    int compute = CUBLAS_COMPUTE_32F;
    if (dtype == DType.FLOAT64) {
      compute = CUBLAS_COMPUTE_64F;
      Memory.putDouble(alphaAt.address(), alpha);
      Memory.putDouble(betaAt.address(), beta);
    } else {
      if (dtype == DType.FLOAT32 && CudaMath.isTf32Allowed()) {
        compute = CUBLAS_COMPUTE_32F_FAST_TF32;
      }
      Memory.putFloat(alphaAt.address(), (float) alpha);
      Memory.putFloat(betaAt.address(), (float) beta);
    }
    int type = type(dtype);
    int outType = dtype == outDType ? type : type(outDType);
    // cuBLAS is column-major: it sees each row-major matrix transposed and computes c^T = b^T a^T.
    int opA = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    int opB = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    a.at(aAddress);
    b.at(bAddress);
    c.at(cAddress);
    if (batch == 1) {
      int code =
          cublasGemmEx(
              handle,
              opB,
              opA,
              n,
              m,
              k,
              alphaAt,
              b,
              type,
              ldb,
              a,
              type,
              lda,
              betaAt,
              c,
              outType,
              ldc,
              compute,
              CUBLAS_GEMM_DEFAULT);
      if (code != 0) {
        CudaCheck.blas("cublasGemmEx(" + m + " x " + n + " x " + k + ", " + dtype + ")", code);
      }
    } else {
      int code =
          cublasGemmStridedBatchedEx(
              handle,
              opB,
              opA,
              n,
              m,
              k,
              alphaAt,
              b,
              type,
              ldb,
              strideB,
              a,
              type,
              lda,
              strideA,
              betaAt,
              c,
              outType,
              ldc,
              strideC,
              batch,
              compute,
              CUBLAS_GEMM_DEFAULT);
      if (code != 0) {
        CudaCheck.blas(
            "cublasGemmStridedBatchedEx("
                + batch
                + " of "
                + m
                + " x "
                + n
                + " x "
                + k
                + ", "
                + dtype
                + ")",
            code);
      }
    }
  }

  private void use(CudaStream next) {
    CudaCheck.blas("cublasSetStream", cublasSetStream_v2(handle, next.handle()));
    // Setting the stream has reset the workspace to cuBLAS's own.
    Long workspace = workspaces.get(next.id());
    if (workspace == null) {
      try (PointerPointer<Pointer> out = new PointerPointer<>(1)) {
        CudaCheck.runtime(
            "cudaMalloc(cuBLAS workspace of " + WORKSPACE_BYTES + " B on cuda:" + device + ")",
            cudaMalloc(out, WORKSPACE_BYTES));
        workspace = out.get().address();
      }
      workspaces.put(next.id(), workspace);
      if (workspaces.size() > MOST_WORKSPACES) {
        Iterator<Long> eldest = workspaces.values().iterator();
        // Waits for the device, so that nothing uses it any more.
        CudaCheck.runtime("cudaFree", cudaFree(new RawPointer(eldest.next())));
        eldest.remove();
      }
    }
    CudaCheck.blas(
        "cublasSetWorkspace",
        cublasSetWorkspace_v2(handle, new RawPointer(workspace), WORKSPACE_BYTES));
    stream = next;
  }
}
