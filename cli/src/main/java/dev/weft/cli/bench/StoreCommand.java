package dev.weft.cli.bench;

import dev.weft.bench.Rows;
import dev.weft.bench.StoreBenchmark;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench store}. */
@Command(
    name = "store",
    description =
        "Many clients of one TCP store: connect, set, get, barrier, in milliseconds for all.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class StoreCommand implements Callable<Integer> {
  @Option(
      names = "--n",
      split = ",",
      paramLabel = "N",
      description = "Numbers of clients (default: 64,256,1024).")
  private List<Integer> clients = List.of(64, 256, 1024);

  @Option(
      names = "--reps",
      paramLabel = "N",
      description = "Rounds, of which best and median count (default: ${DEFAULT-VALUE}).")
  private int rounds = 5;

  @Option(
      names = "--connect-concurrency",
      paramLabel = "N",
      description = "Clients that connect at once, at most (default: ${DEFAULT-VALUE}).")
  private int connecting = 1;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    if (rounds < 1 || connecting < 1 || clients.stream().anyMatch(n -> n < 1)) {
      throw new IllegalArgumentException(
          "--n is %s, --reps %d, --connect-concurrency %d; expected 1 or more"
              .formatted(clients, rounds, connecting));
    }
    return output.write(
        out -> {
          new StoreBenchmark(new Rows(out), rounds, connecting).run(clients);
          return 0;
        });
  }
}
