package dev.weft.dtensor.checkpoint;

import dev.weft.c10d.ProcessGroup;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** The folder of a save: partial until it is committed by renaming. */
final class SaveFolder {
  private static final String PARTIAL = ".partial";
  // Folders that this process is writing; what else is partial was left by a crash.
  private static final Set<Path> UNDER_WAY = ConcurrentHashMap.newKeySet();

  private final Path root;
  private final long step;
  // Decided by the first rank when the save begins.
  private int revision;

  SaveFolder(Path root, long step) {
    this.root = root;
    this.step = step;
  }

  long step() {
    return step;
  }

  Path target() {
    return new StepFolder(root, step, revision).path();
  }

  private Path partial() {
    Path target = target();
    return target.resolveSibling(target.getFileName() + PARTIAL);
  }

  Path data(int rank) {
    return partial().resolve("rank-" + rank + ".safetensors");
  }

  /**
   * The first rank makes the folder and removes what crashed saves left; the others wait. A step
   * that is there already gets another revision, so that the old one stays until the new is whole.
   */
  void prepare(ProcessGroup world) {
    String error = "";
    if (world.rank() == 0) {
      try {
        Files.createDirectories(root);
        removeLeftOvers();
        revision =
            StepFolder.newestFirst(root).stream()
                .filter(f -> f.step() == step)
                .findFirst()
                .map(f -> f.revision() + 1)
                .orElse(0);
        if (!UNDER_WAY.add(partial().toAbsolutePath())) {
          error = "step " + step + " is being saved to " + root + " already; await that first";
        } else {
          Files.createDirectory(partial());
        }
      } catch (IOException | CheckpointException e) {
        error = "cannot make " + partial() + ": " + e;
      }
    }
    String first = exchanged(world, revision + " " + error);
    int blank = first.indexOf(' ');
    revision = Integer.parseInt(first.substring(0, blank));
    requireNone(first.substring(blank + 1));
  }

  private void removeLeftOvers() throws IOException {
    List<Path> old;
    try (Stream<Path> entries = Files.list(root)) {
      old =
          entries
              .filter(
                  p ->
                      p.getFileName().toString().endsWith(PARTIAL)
                          && !UNDER_WAY.contains(p.toAbsolutePath()))
              .toList();
    }
    for (Path p : old) {
      StepFolder.delete(p);
    }
  }

  /** The first rank's text. */
  private static String exchanged(ProcessGroup world, String text) {
    return new String(
        Exchange.all(world, text.getBytes(StandardCharsets.UTF_8)).get(0), StandardCharsets.UTF_8);
  }

  /** The first rank's error, or none, becomes everybody's. */
  private static void requireNone(String error) {
    if (!error.isEmpty()) {
      throw new CheckpointException(error);
    }
  }

  /** Writes the index and gives the folder its name; all ranks return when that is done. */
  void commit(ProcessGroup world, CheckpointIndex index) {
    String error = "";
    if (world.rank() == 0) {
      try {
        writeForced(
            partial().resolve(Checkpoint.INDEX), Checkpoint.MAPPER.writeValueAsBytes(index));
        force(partial());
        Files.move(partial(), target(), StandardCopyOption.ATOMIC_MOVE);
        force(root);
        for (int old = revision - 1; old >= 0; old--) {
          Path path = new StepFolder(root, step, old).path();
          if (Files.exists(path)) {
            StepFolder.delete(path);
          }
        }
      } catch (IOException e) {
        error = "cannot commit " + target() + ": " + e;
      }
    }
    requireNone(exchanged(world, error));
  }

  /** Says that this process no longer writes the folder, whether or not it was committed. */
  void release(ProcessGroup world) {
    if (world.rank() == 0) {
      UNDER_WAY.remove(partial().toAbsolutePath());
    }
  }

  private static void writeForced(Path file, byte[] bytes) throws IOException {
    try (FileChannel out =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      ByteBuffer buffer = ByteBuffer.wrap(bytes);
      while (buffer.hasRemaining()) {
        int unused = out.write(buffer);
      }
      out.force(true);
    }
  }

  /** Makes the entries of a folder durable. */
  private static void force(Path folder) throws IOException {
    try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }
}
