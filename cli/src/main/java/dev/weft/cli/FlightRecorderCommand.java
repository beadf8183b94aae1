package dev.weft.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.debug.Analysis;
import dev.weft.c10d.debug.DumpFiles;
import dev.weft.c10d.debug.FlightRecorderAnalyzer;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SortedMap;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code weft fr}: says what the flight recorders of all ranks tell; exits with 1 for trouble. */
@Command(
    name = "fr",
    description = {
      "Reads the flight recorder dumps of all ranks and says what went wrong.",
      "Dumps of Weft and of PyTorch can be read; ranks may be missing."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class FlightRecorderCommand implements Callable<Integer> {
  @Parameters(index = "0", paramLabel = "DIR", description = "the folder with the dumps")
  private Path folder = Path.of(".");

  @Option(
      names = {"-p", "--prefix"},
      paramLabel = "PREFIX",
      defaultValue = "",
      description = "what the names of the dumps start with (default: anything)")
  private String prefix = "";

  @Option(names = "--json", description = "print the verdicts as PyTorch's analyzer has them")
  private boolean json;

  @Spec private @Nullable CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    if (!Files.isDirectory(folder)) {
      throw new IllegalArgumentException("DIR '" + folder + "' is not a folder");
    }
    PrintWriter out =
        spec == null ? new PrintWriter(System.out, true, UTF_8) : spec.commandLine().getOut();
    SortedMap<Integer, JsonNode> dumps = DumpFiles.read(folder, prefix);
    Analysis analysis = FlightRecorderAnalyzer.analyze(dumps, true);
    if (json) {
      out.println(analysis.toJson().toPrettyString());
    } else {
      out.println(
          "dumps of ranks "
              + dumps.keySet()
              + ": "
              + analysis.matchedCalls()
              + " calls met their counterparts");
      analysis.findings().forEach(f -> out.println("- " + f));
      if (analysis.isClean()) {
        out.println("nothing is wrong");
      }
    }
    out.flush();
    return analysis.isClean() ? 0 : 1;
  }
}
