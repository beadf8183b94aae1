package dev.weft.cli;

import dev.weft.examples.trainer.RunReport;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code weft report}: a page about a run. */
@Command(
    name = "report",
    description = {
      "Writes one HTML file about a run of 'weft train --out RUN': losses, throughput, mesh,",
      "placements and, where it had --profile RUN/traces, memory, a step's timeline, collectives."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class ReportCommand implements Callable<Integer> {
  @Parameters(index = "0", paramLabel = "RUN", description = "the run's folder")
  private Path run = Path.of(".");

  @Option(
      names = "--traces",
      paramLabel = "DIR",
      description = "the folder with the traces (default: RUN/traces, where there are any)")
  private @Nullable Path traces;

  @Option(
      names = {"-o", "--out"},
      paramLabel = "FILE",
      description = "where the page goes (default: RUN/run.html)")
  private @Nullable Path out;

  @Spec private @Nullable CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    if (!Files.isDirectory(run)) {
      throw new IllegalArgumentException("RUN '" + run + "' is not a folder");
    }
    Path from = traces;
    if (from == null && hasTraces(run.resolve("traces"))) {
      from = run.resolve("traces");
    }
    Path page = out == null ? run.resolve("run.html") : out;
    List<String> warnings = RunReport.write(run, from, page);
    PrintWriter to =
        spec == null
            ? new PrintWriter(System.out, true, StandardCharsets.UTF_8)
            : spec.commandLine().getOut();
    if (from == null) {
      to.println("no traces: train with --profile " + run.resolve("traces") + " to see time, too");
    }
    warnings.forEach(w -> to.println("- " + w));
    to.println("report: " + page);
    to.flush();
    return 0;
  }

  private static boolean hasTraces(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return false;
    }
    try (Stream<Path> inside = Files.list(folder)) {
      return inside.anyMatch(
          p -> p.getFileName().toString().matches("rank\\d+\\.trace\\.json\\.gz"));
    }
  }
}
