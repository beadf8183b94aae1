package dev.weft.cli.bench;

import dev.weft.bench.ReductionError;
import dev.weft.bench.Rows;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code weft bench numerics}. */
@Command(
    name = "numerics",
    description = "Error of sums over 2 to 64 ranks in bfloat16 and float16, in millionths.",
    mixinStandardHelpOptions = true)
final class NumericsCommand implements Callable<Integer> {
  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    return output.write(
        out -> {
          ReductionError.run(new Rows(out));
          return 0;
        });
  }
}
