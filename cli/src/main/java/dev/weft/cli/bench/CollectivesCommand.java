package dev.weft.cli.bench;

import dev.weft.bench.CollectiveBenchmark;
import dev.weft.bench.CollectiveRuns;
import dev.weft.c10d.host.HostOptions;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench collectives}. */
@Command(
    name = "collectives",
    description =
        "Collectives of 1 KB to 64 MB between threads or processes of this machine, in"
            + " microseconds.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class CollectivesCommand implements Callable<Integer> {
  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "N",
      description = "Numbers of ranks (default: ${DEFAULT-VALUE}).")
  private List<Integer> ranks = List.of(2, 4);

  @Option(
      names = "--transport",
      split = ",",
      paramLabel = "T",
      description = "Some of ${COMPLETION-CANDIDATES} (default: all).")
  private List<CollectiveRuns.Transport> transports = List.of(CollectiveRuns.Transport.values());

  @Option(
      names = "--sizes",
      split = ",",
      paramLabel = "BYTES",
      description = "Of the vectors (default: 1 KB to 64 MB).")
  private List<Long> sizes = CollectiveBenchmark.SIZES;

  @Option(
      names = "--warm-up",
      paramLabel = "SECONDS",
      description = "Of all operations, before they are measured (default: ${DEFAULT-VALUE}).")
  private double warmUp = 5;

  @Option(
      names = "--algorithm",
      paramLabel = "OP=NAME[,...]",
      description =
          "How collectives over TCP move their data, as WEFT_HOST_ALGORITHM says it, such as"
              + " all_reduce=ring (default: by size and number of ranks).")
  private String algorithms = "";

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    HostOptions named = HostOptions.parse("--algorithm", algorithms);
    return output.write(
        out -> {
          for (int n : ranks) {
            transports.forEach(t -> CollectiveRuns.run(t, n, sizes, warmUp, named, out));
          }
          return 0;
        });
  }
}
