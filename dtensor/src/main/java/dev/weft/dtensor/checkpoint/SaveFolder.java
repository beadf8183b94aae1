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
import java.util.Comparator;
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

  SaveFolder(Path root, long step) {
    this.root = root;
    this.step = step;
  }

  long step() {
    return step;
  }

  Path target() {
    return Checkpoint.folder(root, step);
  }

  private Path partial() {
    Path target = target();
    return target.resolveSibling(target.getFileName() + PARTIAL);
  }

  Path data(int rank) {
    return partial().resolve("rank-" + rank + ".safetensors");
  }

  /** The first rank makes the folder and removes what crashed saves left; the others wait. */
  void prepare(ProcessGroup world) {
    String error = "";
    if (world.rank() == 0) {
      try {
        Files.createDirectories(root);
        removeLeftOvers();
        if (!UNDER_WAY.add(partial().toAbsolutePath())) {
          error = "step " + step + " is being saved to " + root + " already; await that first";
        } else {
          Files.createDirectory(partial());
        }
      } catch (IOException e) {
        error = "cannot make " + partial() + ": " + e;
      }
    }
    requireGood(world, error);
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
      delete(p);
    }
  }

  private static void delete(Path folder) throws IOException {
    List<Path> paths;
    try (Stream<Path> walk = Files.walk(folder)) {
      paths = walk.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path p : paths) {
      Files.delete(p);
    }
  }

  /** The first rank's error, or none, becomes everybody's. */
  private static void requireGood(ProcessGroup world, String error) {
    byte[] first = Exchange.all(world, error.getBytes(StandardCharsets.UTF_8)).get(0);
    if (first.length > 0) {
      throw new CheckpointException(new String(first, StandardCharsets.UTF_8));
    }
  }

  /** Writes the index and gives the folder its name; all ranks return when that is done. */
  void commit(ProcessGroup world, CheckpointIndex index) {
    String error = "";
    if (world.rank() == 0) {
      try {
        writeForced(partial().resolve("index.json"), Checkpoint.MAPPER.writeValueAsBytes(index));
        force(partial());
        replaceTarget();
        force(root);
      } catch (IOException e) {
        error = "cannot commit " + target() + ": " + e;
      }
    }
    requireGood(world, error);
  }

  /** Says that this process no longer writes the folder, whether or not it was committed. */
  void release(ProcessGroup world) {
    if (world.rank() == 0) {
      UNDER_WAY.remove(partial().toAbsolutePath());
    }
  }

  private void replaceTarget() throws IOException {
    if (!Files.exists(target())) {
      Files.move(partial(), target(), StandardCopyOption.ATOMIC_MOVE);
      return;
    }
    Path old = target().resolveSibling(target().getFileName() + ".replaced" + PARTIAL);
    Files.move(target(), old, StandardCopyOption.ATOMIC_MOVE);
    Files.move(partial(), target(), StandardCopyOption.ATOMIC_MOVE);
    delete(old);
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
