package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
import static org.bytedeco.cuda.global.cudart.cuFuncSetAttribute;

import java.util.Arrays;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.jspecify.annotations.Nullable;

/**
 * A kernel of a {@link KernelModule}, loaded on a device when first launched there. Thread-safe.
 */
public final class CudaKernel {
  // What a block may use without asking.
  private static final int USUAL_SHARED_BYTES = 48 << 10;

  private final KernelModule module;
  private final String name;
  private volatile @Nullable CUfunc_st[] functions = new CUfunc_st[0];
  private int sharedBytes = USUAL_SHARED_BYTES;

  CudaKernel(KernelModule module, String name) {
    this.module = module;
    this.name = name;
  }

  /** The function on a device, allowed to use that much dynamic shared memory. */
  CUfunc_st function(int device, int shared) {
    @Nullable CUfunc_st[] all = functions;
    if (device < all.length && shared <= sharedBytes) {
      CUfunc_st f = all[device];
      if (f != null) {
        return f;
      }
    }
    return load(device, shared);
  }

  private synchronized CUfunc_st load(int device, int shared) {
    if (shared > sharedBytes) {
      // All devices ask again.
      functions = new CUfunc_st[0];
      sharedBytes = shared;
    }
    @Nullable CUfunc_st[] all = Arrays.copyOf(functions, Math.max(functions.length, device + 1));
    CUfunc_st f = all[device];
    if (f == null) {
      f = module.function(device, name);
      if (sharedBytes > USUAL_SHARED_BYTES) {
        CudaCheck.driver(
            "cuFuncSetAttribute(" + this + ", shared memory of " + sharedBytes + " B)",
            cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes));
      }
      all[device] = f;
      functions = all;
    }
    return f;
  }

  @Override
  public String toString() {
    return "kernel " + name + " of " + module;
  }
}
