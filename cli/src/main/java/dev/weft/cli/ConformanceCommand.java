package dev.weft.cli;

import dev.weft.conformance.Conformance;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Runs golden cases; exits with 1 when one failed. */
@Command(
    name = "conformance",
    description = "Runs the cases of golden files and compares with what they record.",
    mixinStandardHelpOptions = true)
final class ConformanceCommand implements Callable<Integer> {

  @Parameters(index = "0", paramLabel = "DIR", description = "The folder with the golden files.")
  private Path folder = Path.of(".");

  @Option(
      names = "--only",
      split = ",",
      paramLabel = "NAME",
      description = "Only files of these names, without their ending.")
  private List<String> only = List.of();

  @Option(
      names = "--match",
      paramLabel = "REGEX",
      description = "Only cases whose name contains a match.")
  private @Nullable String match;

  @Override
  public Integer call() throws Exception {
    if (!Files.isDirectory(folder)) {
      throw new IllegalArgumentException("DIR '" + folder + "' is not a folder");
    }
    int failed = new Conformance(System.out).run(folder, new LinkedHashSet<>(only), match);
    return failed == 0 ? CommandLine.ExitCode.OK : 1;
  }
}
