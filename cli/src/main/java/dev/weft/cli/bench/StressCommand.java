package dev.weft.cli.bench;

import dev.weft.bench.CollectiveRuns;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench stress}. */
@Command(
    name = "stress",
    description =
        "Collectives of all kinds and sizes for a while, their results checked: an error where one"
            + " is wrong or does not end in a minute.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class StressCommand implements Callable<Integer> {
  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "Number of ranks (default: ${DEFAULT-VALUE}).")
  private int ranks = 8;

  @Option(
      names = "--transport",
      split = ",",
      paramLabel = "T",
      description = "Some of ${COMPLETION-CANDIDATES} (default: all).")
  private List<CollectiveRuns.Transport> transports = List.of(CollectiveRuns.Transport.values());

  @Option(
      names = "--seconds",
      paramLabel = "S",
      description = "How long each (default: ${DEFAULT-VALUE}).")
  private double seconds = 600;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    return output.write(
        out -> {
          transports.forEach(t -> CollectiveRuns.stress(t, ranks, seconds, out));
          return 0;
        });
  }
}
