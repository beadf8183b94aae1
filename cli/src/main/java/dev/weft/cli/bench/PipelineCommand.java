package dev.weft.cli.bench;

import dev.weft.bench.PipelineBubble;
import dev.weft.bench.Rows;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench pipeline}. */
@Command(
    name = "pipeline",
    description = "Bubble of pipeline schedules, measured and in theory, in percent.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class PipelineCommand implements Callable<Integer> {
  @Option(
      names = "--unit",
      paramLabel = "MS",
      description = "Milliseconds of a forward (default: ${DEFAULT-VALUE}).")
  private long unit = 20;

  @Option(names = "--draw", description = "The measured timelines, too.")
  private boolean draw;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    if (unit < 1) {
      throw new IllegalArgumentException("--unit is " + unit + "; expected 1 or more");
    }
    return output.write(
        out -> {
          new PipelineBubble(new Rows(out), Duration.ofMillis(unit), draw ? out : null).run();
          return 0;
        });
  }
}
