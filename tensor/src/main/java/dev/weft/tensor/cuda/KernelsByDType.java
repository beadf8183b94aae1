package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import org.jspecify.annotations.Nullable;

/** One kernel for each dtype, {@code T} in its source; thread-safe and without look-ups. */
final class KernelsByDType {

  private final String file;
  private final String name;
  private final String[] defines;
  private final @Nullable CudaKernel[] kernels = new CudaKernel[CudaTypes.COUNT];

  /** The kernel of a source file, with definitions besides the type. */
  KernelsByDType(String file, String name, String... defines) {
    this.file = file;
    this.name = name;
    this.defines = defines;
  }

  /** The one for a dtype. */
  CudaKernel of(DType dtype) {
    CudaKernel k = kernels[CudaTypes.index(dtype)];
    return k != null ? k : make(dtype);
  }

  private CudaKernel make(DType dtype) {
    String[] all = new String[defines.length + 1];
    all[0] = "T=" + CudaTypes.of(dtype);
    System.arraycopy(defines, 0, all, 1, defines.length);
    CudaKernel k = KernelModule.of(file, all).kernel(name);
    kernels[CudaTypes.index(dtype)] = k;
    return k;
  }
}
