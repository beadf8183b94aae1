package dev.weft.cli;

import dev.weft.bench.OverheadBenchmark;
import dev.weft.bench.Rows;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Runs a benchmark and prints its results as JSON lines. */
@Command(
    name = "bench",
    description = "Measures the host cost of calls on tiny tensors, in microseconds.",
    mixinStandardHelpOptions = true)
final class BenchCommand implements Callable<Integer> {
  /** What can be measured. */
  enum What {
    /** Plain operators and collectives. */
    dispatch,
    /** Plain operators, distributed ones and redistribution. */
    dtensor
  }

  @Parameters(index = "0", paramLabel = "WHAT", description = "${COMPLETION-CANDIDATES}")
  private What what = What.dtensor;

  @Option(names = "--calls", paramLabel = "N", description = "Calls in a round (${DEFAULT-VALUE}).")
  private int calls = 1000;

  @Option(
      names = "--warm-up",
      paramLabel = "MS",
      description = "Milliseconds before each row (${DEFAULT-VALUE}).")
  private long warmUp = 500;

  @Option(names = "--json", paramLabel = "FILE", description = "Writes there, not to the terminal.")
  private @Nullable Path json;

  @Override
  public Integer call() throws IOException {
    if (calls < 1 || warmUp < 0) {
      throw new IllegalArgumentException(
          "--calls is " + calls + " and --warm-up " + warmUp + "; expected 1 or more, 0 or more");
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
    // Once for nothing: what is measured early would otherwise be compiled for what came later.
    all(new OverheadBenchmark(new Rows(null), calls, warmUp));
    all(new OverheadBenchmark(new Rows(out), calls, warmUp));
  }

  private void all(OverheadBenchmark benchmark) {
    benchmark.plain();
    if (what == What.dtensor) {
      benchmark.distributed();
    }
    benchmark.collectives();
  }
}
