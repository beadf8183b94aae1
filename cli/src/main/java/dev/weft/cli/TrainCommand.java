package dev.weft.cli;

import dev.weft.c10d.elastic.ElasticAgent;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.examples.trainer.LossRow;
import dev.weft.examples.trainer.Train;
import dev.weft.examples.trainer.TrainOptions;
import dev.weft.tensor.cuda.Cuda;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft train}: the trainer example on as many processes, or threads, as its mesh has. */
@Command(
    name = "train",
    description = {
      "Trains a small language model over any factorisation of the ranks, which it starts.",
      "For several machines: weft run ... dev.weft.examples.trainer.Train with the same options."
    },
    sortOptions = false,
    usageHelpAutoWidth = true)
final class TrainCommand implements Callable<Integer> {
  @Mixin private final TrainOptions options = new TrainOptions();

  @Option(
      names = "--max-restarts",
      paramLabel = "K",
      description = "how often failing ranks are started again (default: ${DEFAULT-VALUE})")
  private int maxRestarts;

  @Option(
      names = "--jvm-arg",
      paramLabel = "ARG",
      description = "an option of each rank's JVM, such as --jvm-arg=-Xmx4g; may be repeated")
  private List<String> jvmArguments = List.of();

  @Override
  public Integer call() {
    if (options.inProcess()) {
      if (maxRestarts > 0) {
        throw new IllegalArgumentException(
            "--in-process with --max-restarts " + maxRestarts + "; expected one of them");
      }
      List<LossRow> unused = Train.inProcess(options, System.out);
      return 0;
    }
    options.check(0);
    int ranks = options.dims(0).ranks();
    List<String> jvm = new ArrayList<>(List.of("-Xmx1g"));
    jvm.add("-Dorg.bytedeco.javacpp.maxphysicalbytes=0");
    jvm.addAll(jvmArguments);
    LaunchConfig config =
        LaunchConfig.of(Train.class.getName(), ranks)
            .arguments(options.toArguments())
            .classPath(System.getProperty("java.class.path"))
            .jvmArguments(jvm)
            .prefixOutput(false)
            .shareGpus(options.onGpu() && ranks > Cuda.deviceCount())
            .build();
    return maxRestarts == 0
        ? LocalLauncher.run(config)
        : ElasticAgent.run(
            config, ElasticOptions.of(1, 1, "127.0.0.1", 0).withMaxRestarts(maxRestarts));
  }
}
