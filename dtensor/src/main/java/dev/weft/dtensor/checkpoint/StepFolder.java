package dev.weft.dtensor.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The folder of a complete checkpoint: {@code step-00000040}, or {@code step-00000040.1} where the
 * step was saved again.
 *
 * @param revision 0 at first
 */
record StepFolder(Path root, long step, int revision) {
  private static final Pattern NAME = Pattern.compile("step-(\\d{8,18})(?:\\.(\\d{1,9}))?");

  Path path() {
    String name = String.format(Locale.ROOT, "step-%08d", step);
    return root.resolve(revision == 0 ? name : name + "." + revision);
  }

  /** All of a root, newest first; none where it does not exist. */
  static List<StepFolder> newestFirst(Path root) {
    if (!Files.isDirectory(root)) {
      return List.of();
    }
    try (Stream<Path> entries = Files.list(root)) {
      return entries
          .map(p -> NAME.matcher(p.getFileName().toString()))
          .filter(Matcher::matches)
          .map(
              m ->
                  new StepFolder(
                      root,
                      Long.parseLong(m.group(1)),
                      m.group(2) == null ? 0 : Integer.parseInt(m.group(2))))
          .sorted(
              Comparator.comparingLong(StepFolder::step)
                  .thenComparingInt(StepFolder::revision)
                  .reversed())
          .toList();
    } catch (IOException e) {
      throw new CheckpointException("cannot list " + root + ": " + e.getMessage(), e);
    }
  }

  void delete() {
    try {
      delete(path());
    } catch (IOException e) {
      throw new CheckpointException("cannot remove " + path() + ": " + e, e);
    }
  }

  /** The index goes first, so that what a crash leaves of a folder is no checkpoint. */
  static void delete(Path folder) throws IOException {
    Files.deleteIfExists(folder.resolve(Checkpoint.INDEX));
    List<Path> paths;
    try (Stream<Path> walk = Files.walk(folder)) {
      paths = walk.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path p : paths) {
      Files.delete(p);
    }
  }
}
