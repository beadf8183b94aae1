package dev.weft.cli.bench;

import dev.weft.bench.JmhBenchmark;
import dev.weft.bench.Rows;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench jmh}. */
@Command(
    name = "jmh",
    description =
        "Host cost of single calls by JMH: microseconds, and bytes allocated by all threads.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class JmhCommand implements Callable<Integer> {
  @Option(
      names = "--filter",
      paramLabel = "REGEX",
      description = "The benchmarks whose class or method it finds (default: all).")
  private String filter = "";

  @Option(
      names = "--forks",
      paramLabel = "N",
      description = "Processes a benchmark (default: ${DEFAULT-VALUE}).")
  private int forks = 1;

  @Option(
      names = "--iterations",
      paramLabel = "N",
      description = "Measured in each, of which best and median count (${DEFAULT-VALUE}).")
  private int iterations = 7;

  @Option(
      names = "--time",
      paramLabel = "MS",
      description = "Milliseconds an iteration (${DEFAULT-VALUE}).")
  private long millis = 500;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    return output.write(
        out -> {
          new JmhBenchmark(new Rows(out), forks, iterations, millis).run(filter);
          return 0;
        });
  }
}
