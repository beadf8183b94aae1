package dev.weft.bench;

import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.BenchmarkList;
import org.openjdk.jmh.runner.BenchmarkListEntry;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormat;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/**
 * Runs the benchmarks of {@code dev.weft.bench.jmh}: microseconds a call, best and median of the
 * iterations, and bytes allocated a call by all threads of the process. Each in processes of its
 * own, so that none is compiled for another.
 */
public final class JmhBenchmark {
  private static final String PACKAGE = "dev.weft.bench.jmh.";
  private static final String ALLOCATED = "gc.alloc.rate.norm";

  private final Rows rows;
  private final int forks;
  private final int iterations;
  private final TimeValue time;

  /**
   * A way to measure.
   *
   * @param forks processes a benchmark, one after the other; 0 for this one, whose figures are
   *     worth less
   * @param iterations that are measured, in each process, after half as many that are not
   * @param millis an iteration
   */
  public JmhBenchmark(Rows rows, int forks, int iterations, long millis) {
    if (forks < 0 || iterations < 1 || millis < 1) {
      throw new IllegalArgumentException(
          "forks is %d, iterations %d and millis %d; expected 0 or more, 1 or more, 1 or more"
              .formatted(forks, iterations, millis));
    }
    this.rows = rows;
    this.forks = forks;
    this.iterations = iterations;
    this.time = TimeValue.milliseconds(millis);
  }

  /**
   * Runs what a regular expression finds in class and method.
   *
   * @param filter such as {@code CollectiveCalls} or {@code store.*}
   * @throws IllegalArgumentException if it finds none
   */
  public void run(String filter) {
    Options options =
        new OptionsBuilder()
            .include(PACKAGE.replace(".", "\\.") + ".*" + filter)
            .forks(forks)
            .warmupIterations((iterations + 1) / 2)
            .warmupTime(time)
            .measurementIterations(iterations)
            .measurementTime(time)
            .addProfiler(GCProfiler.class)
            .shouldFailOnError(true)
            .verbosity(VerboseMode.SILENT)
            .build();
    try {
      Collection<RunResult> results = new Runner(options).run();
      results.forEach(this::add);
    } catch (NoBenchmarksException e) {
      throw new IllegalArgumentException(
          "filter is '" + filter + "'; expected a regular expression that finds one of " + names(),
          e);
    } catch (RunnerException e) {
      throw new IllegalStateException("a benchmark failed: " + e.getMessage(), e);
    }
  }

  /** The benchmarks there are, by class and method. */
  static Set<String> names() {
    Set<String> names = new TreeSet<>();
    OutputFormat quiet = OutputFormatFactory.createFormatInstance(System.err, VerboseMode.SILENT);
    for (BenchmarkListEntry entry : BenchmarkList.defaultList().getAll(quiet, List.of())) {
      names.add(entry.getUsername().substring(PACKAGE.length()));
    }
    return names;
  }

  private void add(RunResult result) {
    String name = "jmh_" + snake(result.getPrimaryResult().getLabel());
    Statistics times = result.getPrimaryResult().getStatistics();
    rows.addValue(name, times.getMin(), "us", "stat", "best");
    rows.addValue(name, times.getPercentile(50), "us", "stat", "median");
    Result<?> bytes = result.getSecondaryResults().get(ALLOCATED);
    if (bytes != null) {
      double median = bytes.getStatistics().getPercentile(50);
      rows.addValue(name + "_allocated", median, "B", "stat", "median");
    }
  }

  private static String snake(String camel) {
    return camel.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }
}
