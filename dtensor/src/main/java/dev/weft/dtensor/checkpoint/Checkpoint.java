package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import dev.weft.dtensor.DTensor;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/**
 * Saves and loads named tensors over any mesh. Saving is called by all ranks of the world alike;
 * loading needs no communication. Called by the thread that acts for a rank.
 */
public final class Checkpoint {
  static final ObjectMapper MAPPER = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
  private static final String INDEX = "index.json";

  private final Path folder;
  private final CheckpointIndex index;

  private Checkpoint(Path folder, CheckpointIndex index) {
    this.folder = folder;
    this.index = index;
  }

  /**
   * Writes a checkpoint of a step under {@code root}, and returns when it is committed. An earlier
   * checkpoint of the same step is replaced.
   *
   * @param tensors of any kind, the same names on all ranks; none with an outstanding reduction
   * @param scalars numbers to save along, the same on all ranks
   */
  public static Checkpoint save(
      Path root, long step, Map<String, Tensor> tensors, Map<String, Double> scalars) {
    return saveAsync(root, step, tensors, scalars).await();
  }

  /**
   * Copies this rank's parts and writes them on a thread of its own; {@link PendingSave#await}
   * commits.
   */
  public static PendingSave saveAsync(
      Path root, long step, Map<String, Tensor> tensors, Map<String, Double> scalars) {
    return Autograd.noGrad(() -> PendingSave.start(root, step, tensors, scalars));
  }

  /** The folder of a step. */
  static Path folder(Path root, long step) {
    return root.resolve(String.format(java.util.Locale.ROOT, "step-%08d", step));
  }

  /** The complete checkpoint of the highest step, if there is any. */
  public static Optional<Checkpoint> latest(Path root) {
    if (!Files.isDirectory(root)) {
      return Optional.empty();
    }
    try (Stream<Path> entries = Files.list(root)) {
      return entries
          .filter(p -> p.getFileName().toString().matches("step-\\d+"))
          .max(Comparator.comparingLong(Checkpoint::step))
          .map(Checkpoint::open);
    } catch (IOException e) {
      throw new CheckpointException("cannot list " + root + ": " + e.getMessage(), e);
    }
  }

  private static long step(Path folder) {
    return Long.parseLong(folder.getFileName().toString().substring("step-".length()));
  }

  /**
   * Opens a checkpoint.
   *
   * @param folder the step's folder
   * @throws CheckpointException if it is not one, or a file is missing or has another length
   */
  public static Checkpoint open(Path folder) {
    Path file = folder.resolve(INDEX);
    if (!Files.isRegularFile(file)) {
      throw new CheckpointException(folder + " is no complete checkpoint: it has no " + INDEX);
    }
    CheckpointIndex index;
    try {
      index = MAPPER.readValue(file.toFile(), CheckpointIndex.class);
    } catch (IOException e) {
      throw new CheckpointException(file + " is damaged: " + e.getMessage(), e);
    }
    if (!CheckpointIndex.FORMAT.equals(index.format())) {
      throw new CheckpointException(
          file + " has the format '" + index.format() + "'; expected " + CheckpointIndex.FORMAT);
    }
    index
        .files()
        .forEach(
            (name, bytes) -> {
              Path data = folder.resolve(name);
              long actual = data.toFile().length();
              if (!Files.isRegularFile(data) || actual != bytes) {
                throw new CheckpointException(
                    data
                        + (Files.isRegularFile(data)
                            ? " has " + actual + " bytes; the index has " + bytes
                            : " is missing"));
              }
            });
    return new Checkpoint(folder, index);
  }

  static Checkpoint of(Path folder, CheckpointIndex index) {
    return new Checkpoint(folder, index);
  }

  /** Where it is. */
  public Path folder() {
    return folder;
  }

  /** The training step. */
  public long step() {
    return index.step();
  }

  /** The names of its tensors. */
  public Set<String> names() {
    return java.util.Collections.unmodifiableSet(index.tensors().keySet());
  }

  /** The numbers that were saved along. */
  public Map<String, Double> scalars() {
    return java.util.Collections.unmodifiableMap(index.scalars());
  }

  /**
   * Fills tensors in place, whatever the mesh and placements they were saved from.
   *
   * @param targets of any kind, of the saved shapes and dtypes
   * @param strict whether the names must be exactly the saved ones
   */
  public void load(Map<String, Tensor> targets, boolean strict) {
    Set<String> missing = new TreeSet<>(targets.keySet());
    missing.removeAll(index.tensors().keySet());
    Set<String> extra = new TreeSet<>(index.tensors().keySet());
    extra.removeAll(targets.keySet());
    if (strict && (!missing.isEmpty() || !extra.isEmpty())) {
      throw new CheckpointException(
          folder + " does not fit: it lacks " + missing + " and has " + extra + " besides");
    }
    targets.forEach((name, t) -> check(name, t));
    Autograd.noGrad(
        () -> {
          try (OpenFiles files = new OpenFiles(folder);
              TensorScope scope = TensorScope.open()) {
            targets.forEach(
                (name, t) -> {
                  CheckpointIndex.Entry entry = index.tensors().get(name);
                  if (entry != null) {
                    fill(files, name, entry, t);
                  }
                });
          }
        });
  }

  private void check(String name, Tensor t) {
    CheckpointIndex.Entry entry = index.tensors().get(name);
    if (entry == null) {
      return;
    }
    if (!Arrays.equals(entry.shape(), t.shape()) || !entry.dtype().equals(t.dtype().label())) {
      throw new CheckpointException(
          folder
              + ": tensor '"
              + name
              + "' was saved as "
              + entry.dtype()
              + Arrays.toString(entry.shape())
              + "; the target is "
              + t.describe());
    }
    if (t instanceof DTensor d && d.spec().hasPartial()) {
      throw new IllegalArgumentException(
          "load: tensor '" + name + "' has an outstanding reduction: " + d.describe());
    }
  }

  private static void fill(
      OpenFiles files, String name, CheckpointIndex.Entry entry, Tensor target) {
    StridedTensor part = part(target);
    if (part.numel() == 0) {
      return;
    }
    long[] offset = target instanceof DTensor d ? d.spec().globalOffset() : new long[target.ndim()];
    StridedTensor dense = part.isContiguous() ? part : Tensors.empty(part.dtype(), part.shape());
    long filled = 0;
    for (CheckpointIndex.Piece piece : entry.pieces()) {
      filled += PieceReader.copy(files.get(piece.file()), name, piece, offset, dense);
    }
    if (filled != part.numel()) {
      throw new CheckpointException(
          "the pieces of tensor '"
              + name
              + "' hold "
              + filled
              + " of the "
              + part.numel()
              + " elements of this rank's part");
    }
    if (dense != part) {
      Regions.copy(dense, part);
    }
    part.storage().bumpVersion();
  }

  /** This rank's memory of a tensor. */
  static StridedTensor part(Tensor t) {
    return (StridedTensor) (t instanceof DTensor d ? d.toLocal() : t.detach());
  }

  /** Reads everything and compares all checksums. */
  public void verify() {
    try (OpenFiles files = new OpenFiles(folder)) {
      index
          .tensors()
          .forEach(
              (name, entry) -> {
                for (CheckpointIndex.Piece piece : entry.pieces()) {
                  long sum = files.get(piece.file()).checksum(name);
                  if (sum != piece.crc32c()) {
                    throw new CheckpointException(
                        folder.resolve(piece.file())
                            + " is damaged: the checksum of tensor '"
                            + name
                            + "' is "
                            + sum
                            + "; the index has "
                            + piece.crc32c());
                  }
                }
              });
    }
  }

  /** A saved tensor as a whole, as a plain one; the caller's scope owns it. */
  public StridedTensor read(String name) {
    CheckpointIndex.Entry entry = index.tensors().get(name);
    if (entry == null) {
      throw new CheckpointException(
          folder + " has no tensor '" + name + "'; it has " + index.tensors().keySet());
    }
    StridedTensor t = Tensors.empty(DType.of(entry.dtype()), entry.shape());
    load(Map.of(name, t), false);
    return t;
  }

  /** Files opened when first asked for. */
  private static final class OpenFiles implements AutoCloseable {
    private final Path folder;
    private final Map<String, Safetensors> open = new HashMap<>();

    OpenFiles(Path folder) {
      this.folder = folder;
    }

    Safetensors get(String name) {
      return open.computeIfAbsent(name, n -> Safetensors.open(folder.resolve(n)));
    }

    @Override
    public void close() {
      List.copyOf(open.values()).forEach(Safetensors::close);
    }
  }
}
