package dev.weft.cli.bench;

import dev.weft.bench.Rows;
import dev.weft.bench.SlowLinkTraining;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench slow-link}. */
@Command(
    name = "slow-link",
    description = "Tokens and time to a loss over a slow link, synchronously and with local steps.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class SlowLinkCommand implements Callable<Integer> {
  @Option(
      names = "--delay",
      paramLabel = "MS",
      description = "Milliseconds that a message takes (default: ${DEFAULT-VALUE}).")
  private long delay = 20;

  @Option(
      names = "--bandwidth",
      paramLabel = "MB/S",
      description = "10^6 bytes a second, one way (default: ${DEFAULT-VALUE}).")
  private double bandwidth = 4;

  @Option(
      names = "--target",
      paramLabel = "LOSS",
      description = "The loss to reach (default: ${DEFAULT-VALUE}).")
  private double target = 2.3;

  @Option(
      names = "--max-steps",
      paramLabel = "N",
      description = "When to give up (default: ${DEFAULT-VALUE}).")
  private int maxSteps = 600;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    if (maxSteps < 1) {
      throw new IllegalArgumentException("--max-steps is " + maxSteps + "; expected 1 or more");
    }
    return output.write(
        out -> {
          new SlowLinkTraining(
                  new Rows(out), Duration.ofMillis(delay), bandwidth * 1e6, target, maxSteps)
              .run();
          return 0;
        });
  }
}
