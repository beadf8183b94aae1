package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaDevAttrComputeCapabilityMajor;
import static org.bytedeco.cuda.global.cudart.cudaDevAttrComputeCapabilityMinor;
import static org.bytedeco.cuda.global.cudart.cudaDevAttrMultiProcessorCount;
import static org.bytedeco.cuda.global.cudart.cudaDeviceGetAttribute;
import static org.bytedeco.cuda.global.cudart.cudaDeviceSynchronize;
import static org.bytedeco.cuda.global.cudart.cudaDriverGetVersion;
import static org.bytedeco.cuda.global.cudart.cudaGetDeviceCount;
import static org.bytedeco.cuda.global.cudart.cudaGetDeviceProperties;
import static org.bytedeco.cuda.global.cudart.cudaMemGetInfo;
import static org.bytedeco.cuda.global.cudart.cudaRuntimeGetVersion;

import java.nio.file.Files;
import java.nio.file.Path;
import org.bytedeco.cuda.cudart.cudaDeviceProp;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;

/** Whether CUDA can be used here, and its devices. Thread-safe. */
public final class Cuda {
  private Cuda() {}

  /**
   * A device, as CUDA describes it.
   *
   * @param index its ordinal
   * @param name such as {@code NVIDIA H200}
   * @param major of the compute capability
   * @param minor of the compute capability
   * @param multiprocessors how many it has
   * @param totalBytes its memory
   */
  public record Properties(
      int index, String name, int major, int minor, int multiprocessors, long totalBytes) {
    /** The architecture that code is compiled for, such as {@code sm_90}. */
    public String architecture() {
      return "sm_" + major + minor;
    }
  }

  /** What was found when CUDA was first asked for; the class is initialised then. */
  private static final class Found {
    private static final String NO_DRIVER =
        "there is no NVIDIA driver on this machine (libcuda.so.1 was not found)";

    static final @Nullable String REASON;
    static final int DRIVER_VERSION;
    static final int RUNTIME_VERSION;
    static final Properties[] DEVICES;

    static {
      int[] driver = {0};
      int[] runtime = {0};
      Properties[] devices = {};
      @Nullable String reason = null;
      try {
        if (!mayHaveDriver()) {
          // Nothing is loaded for a program of the CPU.
          throw new CudaException(NO_DRIVER, 0);
        }
        devices = probe(driver, runtime);
        if (devices.length == 0) {
          reason = "the CUDA driver reports no device";
        }
      } catch (UnsatisfiedLinkError | NoClassDefFoundError e) {
        reason = linkReason(String.valueOf(e.getMessage()));
      } catch (CudaException e) {
        reason = e.getMessage();
      }
      REASON = reason;
      DRIVER_VERSION = driver[0];
      RUNTIME_VERSION = runtime[0];
      DEVICES = devices;
    }

    private static boolean mayHaveDriver() {
      return Files.exists(Path.of("/dev/nvidiactl"))
          || Files.exists(Path.of("/dev/nvidia0"))
          || Files.exists(Path.of("/dev/dxg"))
          || CudaLibraries.find("libcuda.so.1") != null;
    }

    private static Properties[] probe(int[] driver, int[] runtime) {
      CudaLibraries.Found unused = CudaLibraries.load("libcudart.so.13");
      CudaCheck.runtime("cudaRuntimeGetVersion", cudaRuntimeGetVersion(runtime));
      CudaCheck.runtime("cudaDriverGetVersion", cudaDriverGetVersion(driver));
      if (driver[0] == 0) {
        throw new CudaException(NO_DRIVER, 0);
      }
      int[] count = {0};
      CudaCheck.runtime("cudaGetDeviceCount", cudaGetDeviceCount(count));
      Properties[] devices = new Properties[count[0]];
      for (int i = 0; i < devices.length; i++) {
        try (cudaDeviceProp p = new cudaDeviceProp()) {
          CudaCheck.runtime("cudaGetDeviceProperties", cudaGetDeviceProperties(p, i));
          devices[i] =
              new Properties(
                  i,
                  p.name().getString(),
                  attribute(cudaDevAttrComputeCapabilityMajor, i),
                  attribute(cudaDevAttrComputeCapabilityMinor, i),
                  attribute(cudaDevAttrMultiProcessorCount, i),
                  p.totalGlobalMem());
        }
      }
      return devices;
    }

    private static String linkReason(String message) {
      if (message.contains("libcuda.so") || CudaLibraries.find("libcuda.so.1") == null) {
        return NO_DRIVER;
      }
      CudaLibraries.Found cudart = CudaLibraries.load("libcudart.so.13");
      if (cudart.problem() != null) {
        return "libcudart.so.13 cannot be loaded: " + cudart.problem();
      }
      if (cudart.path() == null) {
        return "libcudart.so.13 (CUDA 13) was not found; install CUDA 13 or name the folder of its"
            + " libraries, or a Python site-packages with the nvidia wheels, in WEFT_CUDA_LIB_DIRS";
      }
      return "the CUDA bindings cannot be loaded: " + message;
    }
  }

  /** True when there is a driver, the libraries and a device. */
  public static boolean isAvailable() {
    return Found.REASON == null;
  }

  /** Why CUDA cannot be used, with what to do about it; null when it can. */
  public static @Nullable String unavailableReason() {
    return Found.REASON;
  }

  /**
   * Returns when CUDA can be used.
   *
   * @throws UnsupportedOperationException with the reason when it cannot
   */
  public static void require() {
    if (Found.REASON != null) {
      throw new UnsupportedOperationException("CUDA is not available: " + Found.REASON);
    }
  }

  /** The number of devices; 0 when CUDA is not available. */
  public static int deviceCount() {
    return Found.DEVICES.length;
  }

  /** A device's properties. */
  public static Properties properties(int device) {
    check(device);
    return Found.DEVICES[device];
  }

  /** The highest CUDA version that the driver supports, such as 13000; 0 when there is none. */
  public static int driverVersion() {
    return Found.DRIVER_VERSION;
  }

  /** The version of the runtime library, such as 13000; 0 when there is none. */
  public static int runtimeVersion() {
    return Found.RUNTIME_VERSION;
  }

  /** Waits until a device has done all its work. */
  public static void synchronize(int device) {
    CudaThread.bind(device);
    CudaCheck.runtime("cudaDeviceSynchronize", cudaDeviceSynchronize());
    CudaFaults.check(device);
  }

  /** Waits until the current device has done all its work. */
  public static void synchronize() {
    synchronize(currentDevice());
  }

  /** The device that this thread uses where none is named; 0 at first. */
  public static int currentDevice() {
    return CudaThread.current().device();
  }

  /** Makes a device the current one of this thread. */
  public static void setDevice(int device) {
    check(device);
    CudaThread.current().setDevice(device);
  }

  /** Has calls of CUDA's libraries on this thread go to a device; the current one stays. */
  public static void bind(int device) {
    CudaThread unused = CudaThread.bind(device);
  }

  /** Free and total memory of a device in bytes, as the driver sees it. */
  public static long[] memoryInfo(int device) {
    check(device);
    CudaThread.bind(device);
    try (SizeTPointer free = new SizeTPointer(1);
        SizeTPointer total = new SizeTPointer(1)) {
      CudaCheck.runtime("cudaMemGetInfo", cudaMemGetInfo(free, total));
      return new long[] {free.get(), total.get()};
    }
  }

  static int attribute(int attribute, int device) {
    int[] value = {0};
    CudaCheck.runtime("cudaDeviceGetAttribute", cudaDeviceGetAttribute(value, attribute, device));
    return value[0];
  }

  static void check(int device) {
    require();
    if (device < 0 || device >= Found.DEVICES.length) {
      throw new IllegalArgumentException(
          "CUDA device "
              + device
              + " does not exist; expected 0 to "
              + (Found.DEVICES.length - 1)
              + " (this machine has "
              + Found.DEVICES.length
              + ")");
    }
  }
}
