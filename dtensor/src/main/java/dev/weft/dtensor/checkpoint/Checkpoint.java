package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.google.errorprone.annotations.CanIgnoreReturnValue;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.Module;
import dev.weft.optim.Optimizer;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Saves and loads named tensors over any mesh. Saving is called by all ranks of the world alike;
 * loading needs no communication. Called by the thread that acts for a rank.
 */
public final class Checkpoint {
  static final ObjectMapper MAPPER = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
  static final String INDEX = "index.json";

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
   * @param tensors of any kind; ranks may have different ones, such as the stages of a pipeline,
   *     and what several have under one name is the same tensor; none with an outstanding reduction
   * @param scalars numbers to save along, the same on all ranks
   */
  @CanIgnoreReturnValue
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

  /**
   * Writes a checkpoint of a module's parameters and buffers, an optimiser's state, numbers, and
   * where the random stream of distributed tensors stands. Called by all ranks of the world alike.
   *
   * @param optimizer of the module's parameters, or null for none
   * @param scalars numbers to save along, the same on all ranks
   */
  @CanIgnoreReturnValue
  public static Checkpoint save(
      Path root,
      long step,
      Module module,
      @Nullable Optimizer optimizer,
      Map<String, Double> scalars) {
    return saveAsync(root, step, module, optimizer, scalars).await();
  }

  /** The same on a thread of its own; {@link PendingSave#await} commits. */
  public static PendingSave saveAsync(
      Path root,
      long step,
      Module module,
      @Nullable Optimizer optimizer,
      Map<String, Double> scalars) {
    TrainingState state = TrainingState.of(module, optimizer);
    return saveAsync(root, step, state.tensors(), state.scalars(scalars));
  }

  /** The complete checkpoint of the highest step, if there is any. */
  public static Optional<Checkpoint> latest(Path root) {
    return StepFolder.newestFirst(root).stream().findFirst().map(f -> open(f.path()));
  }

  /**
   * The checkpoint of the highest step whose files are all there with the right checksums. What is
   * passed over is reported.
   *
   * @param passedOver gets what is wrong with each newer checkpoint
   */
  public static Optional<Checkpoint> latestIntact(
      Path root, Consumer<CheckpointException> passedOver) {
    for (StepFolder f : StepFolder.newestFirst(root)) {
      try {
        Checkpoint c = open(f.path());
        c.verify();
        return Optional.of(c);
      } catch (CheckpointException e) {
        passedOver.accept(e);
      }
    }
    return Optional.empty();
  }

  /** Removes all but the newest checkpoints. Called by one rank, between saves. */
  public static void keepNewest(Path root, int count) {
    if (count < 1) {
      throw new IllegalArgumentException("count is " + count + "; expected 1 or more");
    }
    List<StepFolder> all = StepFolder.newestFirst(root);
    for (StepFolder old : all.subList(Math.min(count, all.size()), all.size())) {
      old.delete();
    }
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
          try (TensorReader reader = new TensorReader(folder)) {
            targets.forEach(
                (name, t) -> {
                  CheckpointIndex.Entry entry = index.tensors().get(name);
                  if (entry != null) {
                    reader.fill(name, entry, t);
                  }
                });
          }
        });
  }

  /**
   * Fills a module and an optimiser in place, whatever the mesh and placements they were saved
   * from, and sets the random stream of distributed tensors. Names must be exactly the saved ones.
   *
   * @param optimizer of the module's parameters; null leaves a saved one's state unread
   * @return the numbers that the user has saved along
   */
  @CanIgnoreReturnValue
  public Map<String, Double> load(Module module, @Nullable Optimizer optimizer) {
    TrainingState state = TrainingState.of(module, optimizer);
    Map<String, Tensor> targets = state.tensors();
    if (optimizer == null) {
      for (String name : index.tensors().keySet()) {
        if (TrainingState.isOfOptimizer(name)) {
          continue;
        }
        if (!targets.containsKey(name)) {
          throw new CheckpointException(
              folder + " does not fit: it has tensor '" + name + "' besides " + targets.keySet());
        }
      }
      for (String name : targets.keySet()) {
        if (!index.tensors().containsKey(name)) {
          throw new CheckpointException(folder + " does not fit: it lacks tensor '" + name + "'");
        }
      }
    }
    load(targets, optimizer != null);
    return state.restore(targets, index.scalars());
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

  /** This rank's memory of a tensor. */
  static StridedTensor part(Tensor t) {
    return (StridedTensor) (t instanceof DTensor d ? d.toLocal() : t.detach());
  }

  /** Reads everything and compares all checksums. */
  public void verify() {
    try (TensorReader reader = new TensorReader(folder)) {
      index
          .tensors()
          .forEach(
              (name, entry) -> {
                for (CheckpointIndex.Piece piece : entry.pieces()) {
                  long sum = reader.file(piece.file()).checksum(piece.keyOf(name));
                  Long expected = piece.crc32c();
                  if (expected == null || sum != expected) {
                    throw new CheckpointException(
                        folder.resolve(piece.file())
                            + " is damaged: the checksum of tensor '"
                            + name
                            + "' is "
                            + sum
                            + "; the index has "
                            + expected);
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
}
