package dev.weft.examples.trainer;

import dev.weft.profiler.Schedule;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What a run leaves, and when. */
final class RunOptions {
  @Option(
      names = "--out",
      paramLabel = "FOLDER",
      description =
          "where losses.csv, report.html and checkpoints/ are kept, on a disk that all ranks see; a "
              + "run that finds checkpoints there goes on from the newest whole one, on any mesh")
  @Nullable Path out;

  @Option(
      names = "--checkpoint-every",
      paramLabel = "N",
      description = "steps from checkpoint to checkpoint; 0: at the end only (default: 0)")
  int checkpointEvery;

  @Option(
      names = "--keep",
      paramLabel = "N",
      description = "how many checkpoints are kept (default: ${DEFAULT-VALUE})")
  int keep = 2;

  @Option(
      names = "--eval-every",
      paramLabel = "N",
      description =
          "steps from evaluation to evaluation on the held-out part; 0: at the end only (default: 0)")
  int evalEvery;

  @Option(
      names = "--eval-batches",
      paramLabel = "N",
      description = "batches of an evaluation; 0: never (default: ${DEFAULT-VALUE})")
  int evalBatches = 4;

  @Option(
      names = "--log-every",
      paramLabel = "N",
      description = "steps from line to line (default: ${DEFAULT-VALUE})")
  int logEvery = 10;

  @Option(
      names = "--profile",
      paramLabel = "FOLDER",
      description =
          "record some steps, and write each rank's trace there ('weft trace merge' joins them, "
              + "'weft report' draws them)")
  @Nullable Path profile;

  @Option(
      names = "--profile-steps",
      paramLabel = "SKIP,WARMUP,ACTIVE",
      description = "which steps --profile records (default: ${DEFAULT-VALUE})")
  String profileSteps = "5,2,3";

  @Option(
      names = "--stop-after",
      paramLabel = "N",
      description = "end after this step, with a checkpoint from which a later run goes on")
  int stopAfter;

  @Option(
      names = "--in-process",
      description = "ranks are threads of this process instead of processes")
  boolean inProcess;

  /** The steps that {@link #profile} records. */
  Schedule schedule() {
    String[] parts = profileSteps.split(",", -1);
    try {
      if (parts.length == 3) {
        return Schedule.once(
            Integer.parseInt(parts[0]), Integer.parseInt(parts[1]), Integer.parseInt(parts[2]));
      }
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          "--profile-steps '" + profileSteps + "'; expected three numbers such as 5,2,3", e);
    }
    throw new IllegalArgumentException(
        "--profile-steps '" + profileSteps + "'; expected three numbers such as 5,2,3");
  }

  void check() {
    Schedule unused = schedule();
    int[] values = {checkpointEvery, evalEvery, evalBatches, stopAfter};
    String[] names = {"--checkpoint-every", "--eval-every", "--eval-batches", "--stop-after"};
    for (int i = 0; i < values.length; i++) {
      if (values[i] < 0) {
        throw new IllegalArgumentException(names[i] + " " + values[i] + "; expected 0 or more");
      }
    }
    if (keep < 1 || logEvery < 1) {
      throw new IllegalArgumentException(
          "--keep " + keep + " with --log-every " + logEvery + "; expected 1 or more of each");
    }
    Path folder = out;
    if (folder == null && (checkpointEvery > 0 || stopAfter > 0)) {
      throw new IllegalArgumentException(
          "--checkpoint-every or --stop-after without --out; expected a folder for checkpoints");
    }
    if (folder != null && Files.exists(folder) && !Files.isDirectory(folder)) {
      throw new IllegalArgumentException("--out '" + folder + "' is a file; expected a folder");
    }
  }
}
