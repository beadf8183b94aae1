package dev.weft.cli;

import dev.weft.bench.GpuHostOverhead;
import dev.weft.bench.OverheadBenchmark;
import dev.weft.bench.PipelineBubble;
import dev.weft.bench.ReductionError;
import dev.weft.bench.Rows;
import dev.weft.bench.SlowLinkTraining;
import dev.weft.bench.TrainGptBenchmark;
import dev.weft.bench.TrainingMemory;
import dev.weft.tensor.cuda.Cuda;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Runs a benchmark and prints its results as JSON lines. */
@Command(
    name = "bench",
    description = {
      "Runs a benchmark and prints JSON lines.",
      "  dispatch   host cost of plain operators and collectives on tiny tensors, in microseconds",
      "  dtensor    the same, with distributed operators and redistribution",
      "  train-gpt  training of a GPT on one device, in tokens a second",
      "  gpu-host   host cost of NCCL collectives and small operators on a GPU",
      "  numerics   error of sums over 2 to 64 ranks in bfloat16 and float16, in millionths",
      "  pipeline   bubble of pipeline schedules, measured and in theory, in percent",
      "  memory     peak memory of a rank in training, measured and by formula, in MiB",
      "  slow-link  tokens and time to a loss over a slow link, synchronously and with local steps"
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class BenchCommand implements Callable<Integer> {
  @Parameters(
      index = "0",
      paramLabel = "WHAT",
      description = "One of these (default: ${DEFAULT-VALUE}).")
  private String what = "dtensor";

  @Option(
      names = "--calls",
      paramLabel = "N",
      description = "dispatch, dtensor: calls in a round (${DEFAULT-VALUE}).")
  private int calls = 1000;

  @Option(
      names = "--warm-up",
      paramLabel = "MS",
      description = "dispatch, dtensor: milliseconds before each row (${DEFAULT-VALUE}).")
  private long warmUp = 500;

  @Option(
      names = "--device",
      paramLabel = "cpu|cuda",
      description = "train-gpt: where (${DEFAULT-VALUE}).")
  private String device = "cuda";

  @Option(
      names = "--precisions",
      split = ",",
      paramLabel = "P",
      description = "train-gpt: some of ${COMPLETION-CANDIDATES} (all by default).")
  private List<TrainGptBenchmark.Precision> precisions =
      List.of(TrainGptBenchmark.Precision.values());

  @Option(names = "--batch", paramLabel = "N", description = "train-gpt: rows (${DEFAULT-VALUE}).")
  private int batch = 8;

  @Option(names = "--tiny", description = "train-gpt: a tiny model, to see that it runs.")
  private boolean tiny;

  @Option(
      names = "--profile",
      description = "train-gpt: device time by operator of the last step, too.")
  private boolean profile;

  @Option(
      names = "--unit",
      paramLabel = "MS",
      description = "pipeline: milliseconds of a forward (${DEFAULT-VALUE}).")
  private long unit = 20;

  @Option(names = "--draw", description = "pipeline: the measured timelines, too.")
  private boolean draw;

  @Option(
      names = "--delay",
      paramLabel = "MS",
      description = "slow-link: milliseconds that a message takes (${DEFAULT-VALUE}).")
  private long delay = 20;

  @Option(
      names = "--bandwidth",
      paramLabel = "MB/S",
      description = "slow-link: 10^6 bytes a second, one way (${DEFAULT-VALUE}).")
  private double bandwidth = 4;

  @Option(
      names = "--target",
      paramLabel = "LOSS",
      description = "slow-link: the loss to reach (${DEFAULT-VALUE}).")
  private double target = 2.3;

  @Option(
      names = "--max-steps",
      paramLabel = "N",
      description = "slow-link: when to give up (${DEFAULT-VALUE}).")
  private int maxSteps = 600;

  @Option(names = "--json", paramLabel = "FILE", description = "Writes there, not to the terminal.")
  private @Nullable Path json;

  @Override
  public Integer call() throws IOException {
    if (unit < 1 || maxSteps < 1) {
      throw new IllegalArgumentException(
          "--unit is " + unit + " and --max-steps " + maxSteps + "; expected 1 or more of both");
    }
    if (calls < 1 || warmUp < 0 || batch < 1) {
      throw new IllegalArgumentException(
          "--calls is "
              + calls
              + ", --warm-up "
              + warmUp
              + " and --batch "
              + batch
              + "; expected 1 or more, 0 or more, 1 or more");
    }
    if (json == null) {
      run(System.out);
    } else {
      try (PrintStream file =
          new PrintStream(Files.newOutputStream(json), false, StandardCharsets.UTF_8)) {
        run(file);
      }
    }
    return CommandLine.ExitCode.OK;
  }

  private void run(PrintStream out) {
    switch (what) {
      case "dispatch", "dtensor" -> {
        // Once for nothing: what is measured early would otherwise be compiled for what came later.
        overhead(new OverheadBenchmark(new Rows(null), calls, warmUp));
        overhead(new OverheadBenchmark(new Rows(out), calls, warmUp));
      }
      case "train-gpt" -> trainGpt(out);
      case "gpu-host" -> {
        Cuda.require();
        GpuHostOverhead.run(new Rows(out));
      }
      case "numerics" -> ReductionError.run(new Rows(out));
      case "pipeline" ->
          new PipelineBubble(new Rows(out), Duration.ofMillis(unit), draw ? out : null).run();
      case "memory" -> new TrainingMemory(new Rows(out)).run();
      case "slow-link" ->
          new SlowLinkTraining(
                  new Rows(out), Duration.ofMillis(delay), bandwidth * 1e6, target, maxSteps)
              .run();
      default ->
          throw new IllegalArgumentException(
              "WHAT is '"
                  + what
                  + "'; expected dispatch, dtensor, train-gpt, gpu-host, numerics, pipeline, memory"
                  + " or slow-link");
    }
  }

  private void overhead(OverheadBenchmark benchmark) {
    benchmark.plain();
    if (what.equals("dtensor")) {
      benchmark.distributed();
    }
    benchmark.collectives();
  }

  private void trainGpt(PrintStream out) {
    if (!device.equals("cpu") && !device.equals("cuda")) {
      throw new IllegalArgumentException("--device '" + device + "'; expected cpu or cuda");
    }
    if (device.equals("cuda")) {
      Cuda.require();
    }
    TrainGptBenchmark.Options options =
        tiny
            ? TrainGptBenchmark.Options.tiny(device)
            : TrainGptBenchmark.Options.standard(device, batch);
    for (TrainGptBenchmark.Precision precision : precisions) {
      new TrainGptBenchmark(new Rows(out), options, profile ? out : null).run(precision);
    }
  }
}
