package dev.weft.cli.bench;

import dev.weft.bench.Rows;
import dev.weft.bench.TrainingMemory;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code weft bench memory}. */
@Command(
    name = "memory",
    description = "Peak memory of a rank in training, measured and by formula, in MiB.",
    mixinStandardHelpOptions = true)
final class MemoryCommand implements Callable<Integer> {
  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    return output.write(
        out -> {
          new TrainingMemory(new Rows(out)).run();
          return 0;
        });
  }
}
