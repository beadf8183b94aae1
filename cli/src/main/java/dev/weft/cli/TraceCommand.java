package dev.weft.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.profiler.TraceMerge;
import dev.weft.profiler.TraceSummary;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code weft trace}: what is done with traces. */
@Command(
    name = "trace",
    description = "Works on the traces of the profiler.",
    mixinStandardHelpOptions = true,
    subcommands = TraceCommand.Merge.class,
    synopsisSubcommandLabel = "COMMAND")
final class TraceCommand {
  /** {@code weft trace merge}. */
  @Command(
      name = "merge",
      description = {
        "Joins the ranks' traces on one clock into one file, which Perfetto opens, and says what",
        "they tell: top operators, exposed communication, overlap, waiting by rank, stragglers."
      },
      mixinStandardHelpOptions = true,
      sortOptions = false)
  static final class Merge implements Callable<Integer> {
    @Parameters(
        arity = "1..*",
        paramLabel = "DIR|FILE",
        description = "folders with traces rankN.trace.json.gz, or such files")
    private List<Path> paths = List.of();

    @Option(
        names = {"-o", "--out"},
        paramLabel = "FILE",
        description =
            "where the joined trace goes (default: merged.trace.json.gz beside the first)")
    private @Nullable Path out;

    @Spec private @Nullable CommandSpec spec;

    @Override
    public Integer call() {
      for (Path p : paths) {
        if (!Files.exists(p)) {
          throw new IllegalArgumentException(
              "'" + p + "' does not exist; expected a trace, or a folder with traces");
        }
      }
      Path first = paths.get(0);
      Path target = out;
      if (target == null) {
        String name = "merged.trace.json.gz";
        target = Files.isDirectory(first) ? first.resolve(name) : first.resolveSibling(name);
      }
      TraceSummary summary = TraceMerge.merge(paths, target);
      PrintWriter to =
          spec == null ? new PrintWriter(System.out, true, UTF_8) : spec.commandLine().getOut();
      to.print(summary);
      to.println();
      to.println("joined trace: " + target + " (open it on ui.perfetto.dev)");
      to.flush();
      return 0;
    }
  }
}
