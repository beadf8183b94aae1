package dev.weft.cli;

import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.BackendRegistry;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaLibraries;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Says what of Weft works on this machine, and what to do about the rest. */
@Command(
    name = "doctor",
    description = "Checks what works on this machine and says how to mend what does not.",
    mixinStandardHelpOptions = true)
final class DoctorCommand implements Callable<Integer> {
  private static final List<String> CUDA_LIBRARIES =
      List.of(
          "libcuda.so.1",
          "libcudart.so.13",
          "libcublas.so.13",
          "libcublasLt.so.13",
          "libnvrtc.so.13",
          "libnccl.so.2");

  @Spec private CommandSpec spec = CommandSpec.create();

  private boolean broken;

  @Override
  public Integer call() {
    java();
    openBlas();
    cuda();
    backends();
    sharedMemory();
    return broken ? 1 : 0;
  }

  private void line(String state, String subject, String text) {
    PrintWriter out = spec.commandLine().getOut();
    out.printf("%-8s %-16s %s%n", state, subject, text);
    out.flush();
  }

  private void java() {
    Runtime.Version v = Runtime.version();
    line(
        v.feature() >= 17 ? "ok" : "broken",
        "Java",
        v
            + ", "
            + Runtime.getRuntime().availableProcessors()
            + " processors, heap of at most "
            + (Runtime.getRuntime().maxMemory() >> 20)
            + " MiB");
  }

  private void openBlas() {
    try {
      Tensor a = Tensor.of(new float[] {1, 2, 3, 4}, 2, 2);
      double trace = a.matmul(a).toDoubleArray()[0];
      boolean right = trace == 7;
      broken |= !right;
      line(right ? "ok" : "broken", "OpenBLAS", right ? "multiplies" : "gives a wrong product");
    } catch (UnsatisfiedLinkError | ExceptionInInitializerError | NoClassDefFoundError e) {
      broken = true;
      line("broken", "OpenBLAS", "cannot be loaded: " + e);
    }
  }

  private void cuda() {
    String reason = Cuda.unavailableReason();
    if (reason != null) {
      line("no", "CUDA", reason);
    } else {
      line(
          "ok",
          "CUDA",
          "runtime "
              + version(Cuda.runtimeVersion())
              + ", driver for up to "
              + version(Cuda.driverVersion()));
    }
    for (int i = 0; i < Cuda.deviceCount(); i++) {
      Cuda.Properties p = Cuda.properties(i);
      line(
          "ok",
          "cuda:" + i,
          p.name()
              + ", "
              + p.architecture()
              + ", "
              + p.multiprocessors()
              + " multiprocessors, "
              + (p.totalBytes() >> 20)
              + " MiB of which "
              + (Cuda.memoryInfo(i)[0] >> 20)
              + " are free");
    }
    for (String library : CUDA_LIBRARIES) {
      Path path = CudaLibraries.find(library);
      if (path != null) {
        line("ok", library, path.toString());
      } else {
        line(
            "no",
            library,
            library.equals("libcuda.so.1")
                ? "not found; it comes with the NVIDIA driver"
                : "not found in the folders searched; name its folder in WEFT_CUDA_LIB_DIRS");
      }
    }
  }

  private static String version(int number) {
    return number / 1000 + "." + number % 1000 / 10;
  }

  private void backends() {
    for (String name : BackendRegistry.names()) {
      BackendProvider p = BackendRegistry.find(name);
      String reason = p.unavailableReason();
      line(
          reason == null ? "ok" : "no",
          "backend " + p.name(),
          reason == null ? "serves " + String.join(", ", p.deviceTypes()) : reason);
    }
  }

  private void sharedMemory() {
    Path shm = Path.of("/dev/shm");
    if (!Files.isDirectory(shm)) {
      line("no", "/dev/shm", "there is none; several NCCL ranks on one machine need it");
      return;
    }
    long free = shm.toFile().getUsableSpace();
    line(
        free >= 1L << 30 ? "ok" : "small",
        "/dev/shm",
        (free >> 20)
            + " MiB free"
            + (free >= 1L << 30 ? "" : "; give a container more with --shm-size=1g"));
  }
}
