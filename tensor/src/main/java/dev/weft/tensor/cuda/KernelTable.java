package dev.weft.tensor.cuda;

import dev.weft.tensor.DType;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The kernels of a source file for each pair of dtypes, found without building a name: by kernel
 * and dtypes. Thread-safe.
 */
final class KernelTable {
  /** The macro definitions for two dtypes. */
  @FunctionalInterface
  interface Defines {
    String[] of(DType a, DType b);
  }

  private static final int DTYPES = DType.values().length;

  private final String file;
  private final Defines defines;
  private final String[] names;
  private final AtomicReferenceArray<CudaKernel> kernels;

  KernelTable(String file, Defines defines, String... names) {
    this.file = file;
    this.defines = defines;
    this.names = names;
    this.kernels = new AtomicReferenceArray<>(names.length * DTYPES * DTYPES);
  }

  /** The kernel of an index into the names, for two dtypes. */
  @SuppressWarnings("EnumOrdinal") // a place in an array of this run
  CudaKernel get(int which, DType a, DType b) {
    int at = (which * DTYPES + a.ordinal()) * DTYPES + b.ordinal();
    CudaKernel k = kernels.get(at);
    if (k == null) {
      k = KernelModule.of(file, defines.of(a, b)).kernel(names[which]);
      kernels.set(at, k);
    }
    return k;
  }
}
