package dev.weft.c10d.elastic;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The files of one attempt's ranks: their logs, where they are wanted, and the file in which a rank
 * says why it failed. Thread-safe.
 */
final class RankFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(RankFiles.class);
  private static final String ERROR_FILE = "error.json";
  private static final String STATUS_FILE = "status.json";

  private final Path folder;
  private final boolean logs;

  private RankFiles(Path folder, boolean logs) {
    this.folder = folder;
    this.logs = logs;
  }

  /**
   * Makes the folder of an attempt.
   *
   * @throws DistributedException if it cannot be made
   */
  static RankFiles of(LogOptions options, int attempt) {
    Path wanted = options.folder();
    try {
      if (wanted == null) {
        return new RankFiles(Files.createTempDirectory("weft-ranks"), false);
      }
      return new RankFiles(
          Files.createDirectories(wanted.toAbsolutePath().resolve("attempt_" + attempt)), true);
    } catch (IOException e) {
      throw new DistributedException(
          wanted == null
              ? "no folder for the ranks' error files can be made: " + e
              : "log folder '" + wanted + "' cannot be made: " + e,
          e);
    }
  }

  /** Where a rank says why it failed. */
  Path errorFile(int rank) {
    return folder.resolve(Integer.toString(rank)).resolve(ERROR_FILE);
  }

  /** Where a rank says how far it is, if it is asked to. */
  Path statusFile(int rank) {
    return folder.resolve(Integer.toString(rank)).resolve(STATUS_FILE);
  }

  /** Opens a log of a rank, or what swallows it if no logs are wanted. */
  OutputStream open(int rank, String name) throws IOException {
    Path own = Files.createDirectories(folder.resolve(Integer.toString(rank)));
    return logs
        ? Files.newOutputStream(
            own.resolve(name), StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING)
        : OutputStream.nullOutputStream();
  }

  /** Removes what only the launcher needed. */
  @Override
  public void close() {
    if (logs) {
      return;
    }
    try (var all = Files.walk(folder)) {
      List<Path> inner = all.sorted(Comparator.reverseOrder()).toList();
      for (Path path : inner) {
        Files.deleteIfExists(path);
      }
    } catch (IOException e) {
      log.warn("cannot remove {}", folder, e);
    }
  }
}
