package dev.weft.cli;

import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.examples.reference.GptConfig;
import dev.weft.examples.reference.GptDemo;
import dev.weft.examples.reference.GptTraining;
import dev.weft.examples.reference.Layout;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Trains a small language model on data-parallel by tensor-parallel ranks. */
@Command(
    name = "demo",
    description =
        "Trains a small language model on a mesh of processes and prints a sample of its text.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class DemoCommand implements Callable<Integer> {
  // Steps of a run that is over before its hot code would be optimised.
  private static final int SHORT = 200;

  @Option(
      names = "--mesh",
      paramLabel = "dp=N,tp=M",
      description = "Data-parallel and tensor-parallel ranks (default: ${DEFAULT-VALUE}).")
  private String mesh = "dp=2,tp=2";

  @Option(
      names = "--device",
      paramLabel = "cpu|cuda",
      description = "Where to train (default: ${DEFAULT-VALUE}); ranks beyond the GPUs share them.")
  private String device = "cpu";

  @Option(
      names = "--in-process",
      description = "Ranks are threads of this process instead of processes.")
  private boolean inProcess;

  @Option(
      names = "--check",
      description = "Compare each step's loss and gradient norm with the recorded run.")
  private boolean check;

  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "Training steps (default: ${DEFAULT-VALUE}).")
  private int steps = 40;

  @Option(names = "--text", paramLabel = "FILE", description = "Train on a text of your own.")
  private @Nullable Path text;

  @Override
  public Integer call() throws Exception {
    GptDemo.Options options =
        new GptDemo.Options(
            Layout.parse(mesh), checkedDevice(), steps, check, checkedText(), isTerminal());
    if (steps < 1) {
      throw new IllegalArgumentException("--steps " + steps + "; expected at least 1");
    }
    if (check && (text != null || steps > 40)) {
      throw new IllegalArgumentException(
          "--check compares with 40 recorded steps on the text that comes with Weft; it goes with"
              + " neither --text nor more steps");
    }
    GptTraining.check(GptConfig.reference(), options.layout());
    int ranks = options.layout().ranks();
    boolean sharing = device.equals("cuda") && ranks > Cuda.deviceCount();
    if (inProcess) {
      if (sharing) {
        throw new IllegalArgumentException(
            "--in-process with "
                + ranks
                + " ranks needs as many GPUs, and there are "
                + Cuda.deviceCount()
                + ": NCCL tells the ranks of one GPU apart by NCCL_HOSTID, which a process has once;"
                + " leave --in-process out");
      }
      LocalWorld world = LocalWorld.of(ranks);
      if (device.equals("cuda")) {
        world = world.backend("cpu:host,cuda:nccl").devices(Device::cuda);
      }
      List<Boolean> good = world.call(rank -> GptDemo.run(options, System.out));
      return good.contains(false) ? 1 : 0;
    }
    return LocalLauncher.run(
        LaunchConfig.of(GptDemo.class.getName(), ranks)
            .arguments(List.of(options.toArguments()))
            .classPath(System.getProperty("java.class.path"))
            .jvmArguments(jvmArguments())
            .prefixOutput(false)
            .shareGpus(sharing)
            .build());
  }

  /**
   * Ranks have small heaps and share few cores: one thread collects. A short run ends before the
   * optimising compiler's work pays; on as many cores as ranks or fewer it would take most of them.
   */
  private List<String> jvmArguments() {
    List<String> arguments =
        new ArrayList<>(
            List.of("-Xmx1g", "-XX:+UseSerialGC", "-Dorg.bytedeco.javacpp.maxphysicalbytes=0"));
    if (steps <= SHORT) {
      arguments.add("-XX:TieredStopAtLevel=1");
    }
    return arguments;
  }

  private String checkedDevice() {
    if (!device.equals("cpu") && !device.equals("cuda")) {
      throw new IllegalArgumentException("--device '" + device + "'; expected cpu or cuda");
    }
    if (device.equals("cuda")) {
      Cuda.require();
    }
    return device;
  }

  @SuppressWarnings(
      "SystemConsoleNull") // from JDK 22 on progress is always live, which is harmless
  private static boolean isTerminal() {
    return System.console() != null;
  }

  private @Nullable Path checkedText() {
    Path file = text;
    if (file != null && !Files.isReadable(file)) {
      throw new IllegalArgumentException("--text '" + file + "' is not a readable file");
    }
    return file == null ? null : file.toAbsolutePath();
  }
}
