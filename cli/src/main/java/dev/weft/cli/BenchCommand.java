package dev.weft.cli;

import dev.weft.bench.CollectiveBenchmark;
import dev.weft.bench.CollectiveRuns;
import dev.weft.bench.GpuHostOverhead;
import dev.weft.bench.OverheadBenchmark;
import dev.weft.bench.ReductionError;
import dev.weft.bench.Rows;
import dev.weft.bench.TrainGptBenchmark;
import dev.weft.tensor.cuda.Cuda;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
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
      "  collectives  collectives of 1 KB to 64 MB between threads or processes, in microseconds",
      "  gpu-host   host cost of NCCL collectives and small operators on a GPU",
      "  numerics   error of sums over 2 to 64 ranks in bfloat16 and float16, in millionths"
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

  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "N",
      description = "collectives: numbers of ranks (${DEFAULT-VALUE}).")
  private List<Integer> ranks = List.of(2, 4);

  @Option(
      names = "--transport",
      split = ",",
      paramLabel = "T",
      description = "collectives: some of ${COMPLETION-CANDIDATES} (all by default).")
  private List<CollectiveRuns.Transport> transports = List.of(CollectiveRuns.Transport.values());

  @Option(
      names = "--sizes",
      split = ",",
      paramLabel = "BYTES",
      description = "collectives: of the vectors (1 KB to 64 MB by default).")
  private List<Long> sizes = CollectiveBenchmark.SIZES;

  @Option(names = "--batch", paramLabel = "N", description = "train-gpt: rows (${DEFAULT-VALUE}).")
  private int batch = 8;

  @Option(names = "--tiny", description = "train-gpt: a tiny model, to see that it runs.")
  private boolean tiny;

  @Option(
      names = "--profile",
      description = "train-gpt: device time by operator of the last step, too.")
  private boolean profile;

  @Option(names = "--json", paramLabel = "FILE", description = "Writes there, not to the terminal.")
  private @Nullable Path json;

  @Override
  public Integer call() throws IOException {
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
      case "collectives" -> {
        for (int n : ranks) {
          transports.forEach(t -> CollectiveRuns.run(t, n, sizes, out));
        }
      }
      case "train-gpt" -> trainGpt(out);
      case "gpu-host" -> {
        Cuda.require();
        GpuHostOverhead.run(new Rows(out));
      }
      case "numerics" -> ReductionError.run(new Rows(out));
      default ->
          throw new IllegalArgumentException(
              "WHAT is '"
                  + what
                  + "'; expected dispatch, dtensor, collectives, train-gpt, gpu-host or numerics");
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
