package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.nvrtc.nvrtcCompileProgram;
import static org.bytedeco.cuda.global.nvrtc.nvrtcCreateProgram;
import static org.bytedeco.cuda.global.nvrtc.nvrtcDestroyProgram;
import static org.bytedeco.cuda.global.nvrtc.nvrtcGetCUBIN;
import static org.bytedeco.cuda.global.nvrtc.nvrtcGetCUBINSize;
import static org.bytedeco.cuda.global.nvrtc.nvrtcGetProgramLog;
import static org.bytedeco.cuda.global.nvrtc.nvrtcGetProgramLogSize;
import static org.bytedeco.cuda.global.nvrtc.nvrtcVersion;

import com.google.common.hash.Hashing;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.bytedeco.cuda.nvrtc._nvrtcProgram;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compiles CUDA C by NVRTC and keeps the machine code on disk, by source, options, architecture and
 * compiler version. The folder is {@code WEFT_KERNEL_CACHE}, else {@code weft/kernels} in {@code
 * XDG_CACHE_HOME} or {@code ~/.cache}; where it cannot be written, every process compiles anew.
 * Thread-safe.
 */
final class KernelCompiler {
  private static final Logger LOG = LoggerFactory.getLogger(KernelCompiler.class);
  private static final AtomicLong NANOS = new AtomicLong();
  private static final AtomicLong COMPILED = new AtomicLong();
  private static final AtomicLong CACHED = new AtomicLong();
  private static final Map<Path, CompletableFuture<byte[]>> UNDER_WAY = new ConcurrentHashMap<>();
  private static volatile boolean warned;

  private KernelCompiler() {}

  /** What compiling has cost this process so far. */
  static String statistics() {
    return COMPILED.get()
        + " modules compiled, "
        + CACHED.get()
        + " taken from the cache, "
        + NANOS.get() / 1_000_000
        + " ms in all";
  }

  /**
   * Machine code for an architecture such as {@code sm_90}.
   *
   * @param title what the source is, for messages
   * @param name of the source file
   */
  static byte[] compile(String title, String name, String source, String architecture) {
    long start = System.nanoTime();
    List<String> options =
        List.of(
            "--gpu-architecture=" + architecture,
            "--std=c++17",
            "--extra-device-vectorization",
            "--minimal");
    String key = version() + '\0' + options + '\0' + source;
    Path file =
        folder()
            .resolve(
                name.replace('.', '-')
                    + "-"
                    + architecture
                    + "-"
                    + Hashing.sha256()
                        .hashString(key, StandardCharsets.UTF_8)
                        .toString()
                        .substring(0, 32)
                    + ".cubin");
    byte[] code = read(file);
    if (code == null) {
      UsualKernels.prepare(architecture);
      code = once(file, () -> build(title, name, source, options));
    } else {
      CACHED.incrementAndGet();
    }
    NANOS.addAndGet(System.nanoTime() - start);
    return code;
  }

  /** Has one thread build what several ask for at a time. */
  private static byte[] once(Path file, Supplier<byte[]> build) {
    CompletableFuture<byte[]> own = new CompletableFuture<>();
    CompletableFuture<byte[]> other = UNDER_WAY.putIfAbsent(file, own);
    if (other != null) {
      try {
        return other.join();
      } catch (CompletionException e) {
        if (e.getCause() instanceof RuntimeException r) {
          throw r;
        }
        if (e.getCause() instanceof Error error) {
          throw error;
        }
        throw e;
      }
    }
    try {
      byte[] code = build.get();
      write(file, code);
      COMPILED.incrementAndGet();
      boolean unused = own.complete(code);
      return code;
    } catch (RuntimeException | Error e) {
      boolean unused = own.completeExceptionally(e);
      throw e;
    } finally {
      boolean unused = UNDER_WAY.remove(file, own);
    }
  }

  private static String version() {
    // The second opens the first by its name alone, and finds it only where it is loaded already.
    CudaLibraries.Found unused = CudaLibraries.load("libnvrtc-builtins.so.13.0");
    unused = CudaLibraries.load("libnvrtc.so.13");
    int[] major = {0};
    int[] minor = {0};
    try {
      CudaCheck.nvrtc("nvrtcVersion", nvrtcVersion(major, minor));
    } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
      throw new UnsupportedOperationException(
          "kernels cannot be compiled: libnvrtc.so.13 cannot be loaded ("
              + e.getMessage()
              + "); name its folder in WEFT_CUDA_LIB_DIRS",
          e);
    }
    return major[0] + "." + minor[0];
  }

  private static byte[] build(String title, String name, String source, List<String> options) {
    _nvrtcProgram program = new _nvrtcProgram();
    try (BytePointer text = new BytePointer(source, StandardCharsets.UTF_8);
        BytePointer file = new BytePointer(name, StandardCharsets.UTF_8);
        PointerPointer<BytePointer> arguments =
            new PointerPointer<>(options.toArray(String[]::new))) {
      CudaCheck.nvrtc(
          "nvrtcCreateProgram",
          nvrtcCreateProgram(
              program, text, file, 0, (PointerPointer<?>) null, (PointerPointer<?>) null));
      try {
        int code = nvrtcCompileProgram(program, options.size(), arguments);
        if (code != 0) {
          throw new CudaException(
              title + " does not compile for " + options.get(0) + ":\n" + log(program), code);
        }
        try (SizeTPointer size = new SizeTPointer(1)) {
          CudaCheck.nvrtc("nvrtcGetCUBINSize", nvrtcGetCUBINSize(program, size));
          byte[] image = new byte[Math.toIntExact(size.get())];
          try (BytePointer bytes = new BytePointer(image.length)) {
            CudaCheck.nvrtc("nvrtcGetCUBIN", nvrtcGetCUBIN(program, bytes));
            bytes.get(image);
          }
          return image;
        }
      } finally {
        CudaCheck.nvrtc("nvrtcDestroyProgram", nvrtcDestroyProgram(program));
      }
    }
  }

  private static String log(_nvrtcProgram program) {
    try (SizeTPointer size = new SizeTPointer(1)) {
      CudaCheck.nvrtc("nvrtcGetProgramLogSize", nvrtcGetProgramLogSize(program, size));
      try (BytePointer text = new BytePointer(Math.max(1, size.get()))) {
        CudaCheck.nvrtc("nvrtcGetProgramLog", nvrtcGetProgramLog(program, text));
        return text.getString();
      }
    }
  }

  private static Path folder() {
    String own = System.getenv("WEFT_KERNEL_CACHE");
    if (own != null && !own.isBlank()) {
      return Path.of(own);
    }
    String cache = System.getenv("XDG_CACHE_HOME");
    Path root =
        cache == null || cache.isBlank()
            ? Path.of(System.getProperty("user.home"), ".cache")
            : Path.of(cache);
    return root.resolve("weft").resolve("kernels");
  }

  private static byte @Nullable [] read(Path file) {
    try {
      return Files.exists(file) ? Files.readAllBytes(file) : null;
    } catch (IOException e) {
      warn(file, e);
      return null;
    }
  }

  private static void write(Path file, byte[] code) {
    try {
      Path parent = file.getParent();
      if (parent != null) {
        Files.createDirectories(parent);
      }
      // Written apart and moved, so that another process never sees half of it.
      Path part = Files.createTempFile(parent, file.getFileName().toString(), ".part");
      try {
        Files.write(part, code);
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      } finally {
        boolean unused = Files.deleteIfExists(part); // there after a failure only
      }
    } catch (IOException e) {
      warn(file, e);
    }
  }

  private static void warn(Path file, IOException e) {
    if (!warned) {
      warned = true;
      LOG.warn(
          "compiled kernels cannot be kept in {} ({}); every process compiles anew, unless"
              + " WEFT_KERNEL_CACHE names a folder that can be written",
          file.getParent(),
          e.toString());
    }
  }
}
