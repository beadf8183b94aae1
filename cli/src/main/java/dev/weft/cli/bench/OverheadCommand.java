package dev.weft.cli.bench;

import dev.weft.bench.OverheadBenchmark;
import dev.weft.bench.Rows;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Host cost of operators and collectives on tiny tensors. */
abstract sealed class OverheadCommand implements Callable<Integer> {
  @Mixin private Output output = new Output();

  @Option(names = "--calls", paramLabel = "N", description = "Calls in a round (${DEFAULT-VALUE}).")
  private int calls = 1000;

  @Option(
      names = "--warm-up",
      paramLabel = "MS",
      description = "Milliseconds before each row (${DEFAULT-VALUE}).")
  private long warmUp = 500;

  /** {@code weft bench dispatch}. */
  @Command(
      name = "dispatch",
      description =
          "Host cost of plain operators and collectives on tiny tensors, in microseconds.",
      mixinStandardHelpOptions = true)
  static final class Dispatch extends OverheadCommand {
    @Override
    boolean withDistributed() {
      return false;
    }
  }

  /** {@code weft bench dtensor}. */
  @Command(
      name = "dtensor",
      description = "The same as dispatch, with distributed operators and redistribution.",
      mixinStandardHelpOptions = true)
  static final class Distributed extends OverheadCommand {
    @Override
    boolean withDistributed() {
      return true;
    }
  }

  abstract boolean withDistributed();

  @Override
  public Integer call() {
    if (calls < 1 || warmUp < 0) {
      throw new IllegalArgumentException(
          "--calls is " + calls + " and --warm-up " + warmUp + "; expected 1 or more, 0 or more");
    }
    return output.write(
        out -> {
          // Once for nothing: what is measured early would otherwise be compiled for what came
          // later.
          run(new Rows(null));
          run(new Rows(out));
          return 0;
        });
  }

  private void run(Rows rows) {
    OverheadBenchmark benchmark = new OverheadBenchmark(rows, calls, warmUp);
    benchmark.plain();
    if (withDistributed()) {
      benchmark.distributed();
    }
    benchmark.collectives();
  }
}
