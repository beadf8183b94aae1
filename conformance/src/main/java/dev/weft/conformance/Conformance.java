package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Runs the cases of golden files and counts how they end. One thread; ranks are threads of its own.
 */
public final class Conformance {
  private final PrintStream out;
  private final Map<Outcome.Kind, Integer> total = new EnumMap<>(Outcome.Kind.class);

  /** Prints to a stream. */
  public Conformance(PrintStream out) {
    this.out = out;
  }

  /**
   * Runs the files of a folder and of its sub-folders.
   *
   * @param only names of files without ending, or empty for all
   * @param match a regular expression that case names must contain, or null
   * @return the number of failed cases
   */
  public int run(Path folder, Set<String> only, @Nullable String match) throws IOException {
    List<Path> files;
    try (Stream<Path> walk = Files.walk(folder)) {
      files = walk.filter(p -> isData(p) && wanted(p, only)).sorted().toList();
    }
    if (files.isEmpty()) {
      throw new IllegalArgumentException(
          "no golden file in " + folder + (only.isEmpty() ? "" : " among " + only));
    }
    Set<String> missing = new TreeSet<>(only);
    files.forEach(f -> missing.remove(base(f)));
    if (!missing.isEmpty()) {
      throw new IllegalArgumentException(folder + " has no golden file of the names " + missing);
    }
    List<String> summaries = new ArrayList<>();
    for (Path file : files) {
      summaries.add(runFile(file, match));
    }
    summaries.forEach(out::println);
    out.println("total: " + counts(total));
    return total.getOrDefault(Outcome.Kind.FAILED, 0);
  }

  private static boolean isData(Path p) {
    String name = p.getFileName().toString();
    return (name.endsWith(".json") || name.endsWith(".json.gz")) && Runners.knows(base(p));
  }

  private static boolean wanted(Path p, Set<String> only) {
    return only.isEmpty() || only.contains(base(p));
  }

  private static String base(Path p) {
    String name = p.getFileName().toString();
    return name.substring(0, name.indexOf('.'));
  }

  private String runFile(Path file, @Nullable String match) throws IOException {
    JsonNode root = Json.read(file);
    String base = base(file);
    CaseRunner runner = Runners.of(base, file);
    Map<Outcome.Kind, Integer> counts = new EnumMap<>(Outcome.Kind.class);
    for (GoldenCases.Case c : GoldenCases.of(root)) {
      if (match != null && !c.id().matches(".*(" + match + ").*")) {
        continue;
      }
      Outcome outcome = runCase(runner, c.node());
      if (outcome.kind() == Outcome.Kind.FAILED) {
        out.println(c.id() + ": " + outcome.detail());
      }
      counts.merge(outcome.kind(), 1, Integer::sum);
      total.merge(outcome.kind(), 1, Integer::sum);
    }
    return base + ": " + counts(counts);
  }

  private static Outcome runCase(@Nullable CaseRunner runner, JsonNode c) {
    if (runner == null) {
      return Outcome.failed("there is no runner for this file");
    }
    try {
      return runner.run(c);
    } catch (CaseRunner.Mismatch e) {
      return Outcome.failed(String.valueOf(e.getMessage()));
    } catch (Exception e) {
      return Outcome.failed("the runner threw " + e);
    }
  }

  private static String counts(Map<Outcome.Kind, Integer> counts) {
    return counts.getOrDefault(Outcome.Kind.PASSED, 0)
        + " passed, "
        + counts.getOrDefault(Outcome.Kind.FAILED, 0)
        + " failed, "
        + counts.getOrDefault(Outcome.Kind.DEVIATION, 0)
        + " deviations, "
        + counts.getOrDefault(Outcome.Kind.NOT_APPLICABLE, 0)
        + " not applicable";
  }
}
