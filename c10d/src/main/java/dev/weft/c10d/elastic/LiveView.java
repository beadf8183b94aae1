package dev.weft.c10d.elastic;

import dev.weft.c10d.metrics.StatusFile;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Where the ranks of a group are, from their processes and what they tell in files. */
final class LiveView implements Supplier<List<String>> {
  private static final Logger log = LoggerFactory.getLogger(LiveView.class);

  private final String title;
  private final RankFiles files;
  private final Supplier<List<Worker>> workers;
  private final long started = System.nanoTime();

  /**
   * Makes a view.
   *
   * @param title what runs
   * @param workers the processes so far
   */
  LiveView(String title, RankFiles files, Supplier<List<Worker>> workers) {
    this.title = title;
    this.files = files;
    this.workers = workers;
  }

  /** A rank that only had to end with the others has not failed. */
  private static String ending(Worker worker) {
    return worker.wasStopped() ? StatusBlock.STOPPED : worker.ending();
  }

  @Override
  public List<String> get() {
    List<StatusBlock.Row> rows = new ArrayList<>();
    for (Worker worker : workers.get()) {
      StatusFile.Status status = null;
      try {
        status = StatusFile.read(files.statusFile(worker.rank())).orElse(null);
      } catch (IOException e) {
        log.debug("the status of rank {} cannot be read", worker.rank(), e);
      }
      rows.add(
          new StatusBlock.Row(worker.rank(), worker.isAlive() ? null : ending(worker), status));
    }
    return StatusBlock.render(
        title, rows, Duration.ofNanos(System.nanoTime() - started), System.currentTimeMillis());
  }
}
