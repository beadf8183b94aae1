package dev.weft.examples.elastic;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.CheckedOutputStream;

/**
 * The checkpoints of a run in one folder, a file each. A file appears under its name only when it
 * is whole and on the disk, so that a process may be killed at any time; the newest that reads well
 * counts. One rank writes.
 */
final class Checkpoints {
  private static final int MAGIC = 0x57454654;
  private static final int KEPT = 2;
  private static final Pattern NAME = Pattern.compile("step-\\d{8}\\.checkpoint");

  private final Path folder;

  Checkpoints(Path folder) throws IOException {
    this.folder = Files.createDirectories(folder);
  }

  /** Saves parameters after a number of steps, and removes all but the newest files. */
  void save(long steps, Map<String, Tensor> parameters) throws IOException {
    Path part = folder.resolve("checkpoint.part");
    try (FileChannel file =
        FileChannel.open(
            part,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      write(Channels.newOutputStream(file), steps, parameters);
      file.force(true);
    }
    Path whole = folder.resolve("step-%08d.checkpoint".formatted(steps));
    Files.move(part, whole, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    try (FileChannel entries = FileChannel.open(folder, StandardOpenOption.READ)) {
      entries.force(true); // the new name, too, is on the disk
    }
    List<Path> all = newestFirst();
    for (Path old : all.subList(Math.min(KEPT, all.size()), all.size())) {
      Files.delete(old);
    }
  }

  private static void write(OutputStream target, long steps, Map<String, Tensor> parameters)
      throws IOException {
    var checked = new CheckedOutputStream(new BufferedOutputStream(target, 1 << 16), new CRC32());
    var out = new DataOutputStream(checked);
    out.writeInt(MAGIC);
    out.writeLong(steps);
    out.writeInt(parameters.size());
    for (var entry : parameters.entrySet()) {
      float[] values = entry.getValue().toFloatArray();
      out.writeUTF(entry.getKey());
      out.writeInt(values.length);
      for (float value : values) {
        out.writeFloat(value);
      }
    }
    out.writeLong(checked.getChecksum().getValue());
    out.flush();
  }

  /**
   * What a file holds.
   *
   * @param steps how many steps have been made
   * @param values the parameters by name
   */
  record Checkpoint(long steps, Map<String, float[]> values) {
    /** Puts the values into parameters of these names. */
    void copyTo(Map<String, Tensor> parameters) {
      if (!parameters.keySet().equals(values.keySet())) {
        throw new IllegalArgumentException(
            "the checkpoint has parameters %s; expected %s"
                .formatted(values.keySet(), parameters.keySet()));
      }
      Autograd.noGrad(
          () ->
              values.forEach(
                  (name, array) -> {
                    Tensor parameter = Objects.requireNonNull(parameters.get(name));
                    Tensor unused = InPlace.copy(parameter, Tensor.of(array, parameter.shape()));
                  }));
    }
  }

  /** The newest checkpoint that is whole. */
  Optional<Checkpoint> latest() throws IOException {
    for (Path file : newestFirst()) {
      try (InputStream in = Files.newInputStream(file)) {
        return Optional.of(read(in));
      } catch (IOException e) {
        System.err.println("checkpoint " + file + " is passed over: " + e);
      }
    }
    return Optional.empty();
  }

  private static Checkpoint read(InputStream source) throws IOException {
    var checked = new CheckedInputStream(new BufferedInputStream(source, 1 << 16), new CRC32());
    var in = new DataInputStream(checked);
    int magic = in.readInt();
    if (magic != MAGIC) {
      throw new IOException("it begins with %08x; expected %08x".formatted(magic, MAGIC));
    }
    long steps = in.readLong();
    int count = in.readInt();
    Map<String, float[]> values = new LinkedHashMap<>();
    for (int i = 0; i < count; i++) {
      String name = in.readUTF();
      float[] array = new float[in.readInt()];
      for (int k = 0; k < array.length; k++) {
        array[k] = in.readFloat();
      }
      values.put(name, array);
    }
    long sum = checked.getChecksum().getValue();
    long expected = in.readLong();
    if (sum != expected) {
      throw new IOException("its checksum is %x; expected %x".formatted(sum, expected));
    }
    return new Checkpoint(steps, values);
  }

  private List<Path> newestFirst() throws IOException {
    try (var files = Files.list(folder)) {
      return files
          .filter(file -> NAME.matcher(file.getFileName().toString()).matches())
          .sorted(Comparator.reverseOrder())
          .toList();
    }
  }
}
