package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cuModuleGetFunction;
import static org.bytedeco.cuda.global.cudart.cuModuleLoadData;
import static org.bytedeco.cuda.global.cudart.cudaFree;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUmod_st;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * A source file in CUDA C with macro definitions, compiled for a device's architecture when one of
 * its kernels is first launched there. Thread-safe.
 *
 * <p>The source is a resource of this package, put behind {@code common.cuh}; it includes nothing,
 * so that no CUDA header is needed where it runs. Kernels are {@code extern "C"}.
 */
public final class KernelModule {
  private static final Map<String, KernelModule> MODULES = new ConcurrentHashMap<>();

  private final String file;
  private final List<String> defines;
  private final Map<String, CudaKernel> kernels = new ConcurrentHashMap<>();
  private final List<@Nullable CUmod_st> loaded = new ArrayList<>();

  private KernelModule(String file, List<String> defines) {
    this.file = file;
    this.defines = defines;
  }

  /**
   * The module of a source file and definitions; equal arguments give the same one.
   *
   * @param file such as {@code softmax.cu}
   * @param defines such as {@code T=float}
   */
  public static KernelModule of(String file, String... defines) {
    List<String> list = List.of(defines);
    return MODULES.computeIfAbsent(file + list, k -> new KernelModule(file, list));
  }

  /** One of its kernels. */
  public CudaKernel kernel(String name) {
    CudaKernel k = kernels.get(name);
    return k != null ? k : kernels.computeIfAbsent(name, n -> new CudaKernel(this, n));
  }

  CUfunc_st function(int device, String name) {
    CUmod_st module = load(device);
    CudaThread.bind(device);
    CUfunc_st f = new CUfunc_st();
    CudaCheck.driver(
        "cuModuleGetFunction(" + name + " of " + this + ")", cuModuleGetFunction(f, module, name));
    return f;
  }

  private synchronized CUmod_st load(int device) {
    while (loaded.size() <= device) {
      loaded.add(null);
    }
    CUmod_st module = loaded.get(device);
    if (module == null) {
      byte[] code = compile(Cuda.properties(device).architecture());
      CudaThread.bind(device);
      // Makes the device's primary context current on this thread, which the driver API needs.
      CudaCheck.runtime("cudaFree", cudaFree((Pointer) null));
      module = new CUmod_st();
      try (BytePointer image = new BytePointer(code)) {
        CudaCheck.driver("cuModuleLoadData(" + this + ")", cuModuleLoadData(module, image));
      }
      loaded.set(device, module);
    }
    return module;
  }

  /** Its machine code, from the cache or compiled now. */
  byte[] compile(String architecture) {
    return KernelCompiler.compile(toString(), file, source(), architecture);
  }

  private String source() {
    // Not as options: those would be seen by the compiler's own header, and by common.cuh.
    StringBuilder text = new StringBuilder(resource("common.cuh"));
    for (String define : defines) {
      text.append("\n#define ").append(define.replaceFirst("=", " "));
    }
    return text.append("\n#line 1 \"")
        .append(file)
        .append("\"\n")
        .append(resource(file))
        .toString();
  }

  static String resource(String name) {
    try (InputStream in = KernelModule.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalArgumentException("there is no kernel source " + name);
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new IllegalStateException("kernel source " + name + " cannot be read", e);
    }
  }

  @Override
  public String toString() {
    return defines.isEmpty() ? file : file + defines;
  }
}
