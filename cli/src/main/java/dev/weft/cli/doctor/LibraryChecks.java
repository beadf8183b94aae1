package dev.weft.cli.doctor;

import static dev.weft.cli.doctor.Finding.broken;
import static dev.weft.cli.doctor.Finding.no;
import static dev.weft.cli.doctor.Finding.ok;
import static dev.weft.cli.doctor.Finding.warn;

import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.BackendRegistry;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaLibraries;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/** Java, and the native libraries: each does a little sum. */
final class LibraryChecks {
  private static final String CLEAR_CACHE = "rm -rf ~/.javacpp/cache";
  private static final List<String> CUDA_LIBRARIES =
      List.of(
          "libcuda.so.1",
          "libcudart.so.13",
          "libcublas.so.13",
          "libcublasLt.so.13",
          "libnvrtc.so.13",
          "libnccl.so.2");

  private final Map<String, String> environment;

  LibraryChecks(Map<String, String> environment) {
    this.environment = environment;
  }

  List<Finding> all() {
    List<Finding> out = new ArrayList<>();
    out.add(java());
    out.add(
        natives(
            "OpenBLAS",
            "multiplies",
            () -> {
              Tensor a = Tensor.of(new float[] {1, 2, 3, 4}, 2, 2);
              return a.matmul(a).toDoubleArray()[0] == 7;
            }));
    out.add(
        natives(
            "ND4J",
            "adds",
            () ->
                Tensor.of(new float[] {1, 2}, 2).toNd4j().addi(1).sumNumber().doubleValue() == 5));
    String core = environment.get("OPENBLAS_CORETYPE");
    if (core != null) {
      out.add(
          warn(
              "OpenBLAS",
              "OPENBLAS_CORETYPE is "
                  + core
                  + ": kernels for another CPU can run at half the speed",
              "unset OPENBLAS_CORETYPE"));
    }
    cuda(out);
    for (String name : BackendRegistry.names()) {
      out.add(backend(BackendRegistry.find(name)));
    }
    return out;
  }

  private static Finding java() {
    Runtime.Version v = Runtime.version();
    String text =
        "%s, %d processors, heap of at most %d MiB"
            .formatted(
                v,
                Runtime.getRuntime().availableProcessors(),
                Runtime.getRuntime().maxMemory() >> 20);
    return v.feature() >= 17
        ? ok("Java", text)
        : broken("Java", text + "; 17 is needed", "apt-get install openjdk-17-jdk-headless");
  }

  private static Finding natives(String subject, String does, BooleanSupplier sum) {
    try {
      return sum.getAsBoolean()
          ? ok(subject, does)
          : broken(subject, "gives a wrong result", CLEAR_CACHE);
    } catch (UnsatisfiedLinkError | ExceptionInInitializerError | NoClassDefFoundError e) {
      return broken(subject, "cannot be loaded: " + e, CLEAR_CACHE);
    }
  }

  private static void cuda(List<Finding> out) {
    String reason = Cuda.unavailableReason();
    out.add(
        reason != null
            ? no("CUDA", reason, "apt-get install nvidia-driver-580 (only for machines with a GPU)")
            : ok(
                "CUDA",
                "runtime "
                    + version(Cuda.runtimeVersion())
                    + ", driver for up to "
                    + version(Cuda.driverVersion())));
    for (int i = 0; i < Cuda.deviceCount(); i++) {
      Cuda.Properties p = Cuda.properties(i);
      out.add(
          ok(
              "cuda:" + i,
              "%s, %s, %d multiprocessors, %d MiB of which %d are free"
                  .formatted(
                      p.name(),
                      p.architecture(),
                      p.multiprocessors(),
                      p.totalBytes() >> 20,
                      Cuda.memoryInfo(i)[0] >> 20)));
    }
    for (String library : CUDA_LIBRARIES) {
      Path path = CudaLibraries.find(library);
      if (path != null) {
        out.add(ok(library, path.toString()));
      } else if (library.equals("libcuda.so.1")) {
        out.add(
            no(
                library,
                "not found; it comes with the driver",
                "apt-get install nvidia-driver-580"));
      } else {
        out.add(
            no(
                library,
                "not found in the folders searched",
                "export WEFT_CUDA_LIB_DIRS=<the folder that has it>"));
      }
    }
  }

  private static String version(int number) {
    return number / 1000 + "." + number % 1000 / 10;
  }

  private static Finding backend(BackendProvider p) {
    String subject = "backend " + p.name();
    String reason = p.unavailableReason();
    if (reason == null) {
      return ok(subject, "serves " + String.join(", ", p.deviceTypes()));
    }
    return no(
        subject,
        reason,
        switch (p.name()) {
          case "mpi" -> "apt-get install openmpi-bin";
          case "nccl" -> "apt-get install libnccl2";
          default -> "see the backend's own documentation";
        });
  }
}
