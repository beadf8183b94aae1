package dev.weft.examples.trainer;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ObjectCollectives;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.dtensor.checkpoint.CheckpointException;
import dev.weft.examples.reference.DecoderConfig;
import dev.weft.optim.Optimizer;
import dev.weft.tensor.Tensor;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Parameters, optimiser state and the position in the data, saved from one mesh and loaded on any.
 * Called by all ranks alike.
 */
final class TrainingCheckpoint {
  private static final String OPTIMIZER = "optimizer.";
  private static final String SAMPLES = "samples";
  private static final int PROBES = 64;
  private static final int PROBE = 64;

  private final Path root;
  private final ParallelModel model;
  private final Optimizer optimizer;
  private final Map<String, Double> identity;

  /**
   * A place for checkpoints.
   *
   * @param identity numbers by option; a checkpoint with others is refused
   */
  TrainingCheckpoint(
      Path root, ParallelModel model, Optimizer optimizer, Map<String, Double> identity) {
    this.root = root;
    this.model = model;
    this.optimizer = optimizer;
    this.identity = identity;
  }

  /** What a run can only go on with: the model's shape, and what decides the order of samples. */
  static Map<String, Double> identity(DecoderConfig c, DataOptions data, TokenSource tokens) {
    Map<String, Double> out = new TreeMap<>();
    out.put("vocab", (double) c.vocab());
    out.put("width", (double) c.dModel());
    out.put("heads", (double) c.nHeads());
    out.put("kv-heads", (double) c.nKvHeads());
    out.put("layers", (double) c.nLayers());
    out.put("feed-forward", (double) c.dFf());
    out.put("tied", c.tied() ? 1.0 : 0.0);
    out.put("rope-theta", c.ropeTheta());
    out.put("norm-eps", c.normEps());
    out.put("seq", (double) c.seq());
    out.put("seed", (double) data.seed);
    out.put("order=random", data.order == DataOptions.Order.RANDOM ? 1.0 : 0.0);
    out.put("data (tokens)", (double) tokens.size());
    out.put("data (checksum)", (double) checksum(tokens));
    out.put("held-out (tokens)", (double) data.heldOutOf(tokens));
    return out;
  }

  /** Of some tokens from all over the data. */
  private static long checksum(TokenSource tokens) {
    CRC32C sum = new CRC32C();
    int each = (int) Math.min(PROBE, tokens.size());
    long[] window = new long[each];
    for (int i = 0; i < PROBES; i++) {
      tokens.read((tokens.size() - each) * i / (PROBES - 1), window, 0, each);
      for (long token : window) {
        for (int shift = 0; shift < Integer.SIZE; shift += Byte.SIZE) {
          sum.update((int) (token >>> shift));
        }
      }
    }
    return sum.getValue();
  }

  /**
   * Where a run stands.
   *
   * @param step the steps that were done
   * @param samples that were taken from the order
   */
  record Position(long step, long samples) {}

  private Map<String, Tensor> tensors() {
    Map<String, Tensor> out = new LinkedHashMap<>();
    Set<Tensor> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    Map<String, Tensor> names = model.namedParameters();
    names.forEach(
        (name, p) -> {
          if (seen.add(p)) {
            out.put("model." + name, p);
          }
        });
    optimizer.state(names).forEach((name, t) -> out.put(OPTIMIZER + name, t));
    return out;
  }

  /** Saves, and removes all but the newest {@code keep} checkpoints. */
  void save(Position at, int keep) {
    Map<String, Double> scalars = new TreeMap<>(identity);
    scalars.put(SAMPLES, (double) at.samples());
    optimizer.scalars().forEach((name, value) -> scalars.put(OPTIMIZER + name, value));
    Checkpoint.save(root, at.step(), tensors(), scalars);
    if (Distributed.rank() == 0) {
      Checkpoint.keepNewest(root, keep);
    }
  }

  /**
   * Loads the newest whole checkpoint, which the first rank looks for.
   *
   * @param log told about damaged ones
   * @return the beginning where there is none
   * @throws IllegalArgumentException if it is of another model or other data
   */
  Position restore(PrintStream log) {
    String found = "";
    if (Distributed.rank() == 0) {
      found =
          Checkpoint.latestIntact(root, e -> log.println("passed over: " + e.getMessage()))
              .map(c -> c.folder().getFileName().toString())
              .orElse("");
    }
    String folder =
        String.valueOf(
            ObjectCollectives.broadcastObjectList(List.of(found), String.class, 0, null).get(0));
    if (folder.isEmpty()) {
      return new Position(0, 0);
    }
    return load(Checkpoint.open(root.resolve(folder)));
  }

  private Position load(Checkpoint checkpoint) {
    Map<String, Double> saved = checkpoint.scalars();
    identity.forEach(
        (name, value) -> {
          Double before = saved.get(name);
          if (!value.equals(before)) {
            throw new IllegalArgumentException(
                "--%s is %s, and the checkpoint %s was made with %s; expected the same"
                    .formatted(name, text(value), checkpoint.folder(), text(before)));
          }
        });
    Double samples = saved.get(SAMPLES);
    if (samples == null) {
      throw new CheckpointException(checkpoint.folder() + " lacks the number of " + SAMPLES);
    }
    Map<String, Tensor> targets = tensors();
    TreeSet<String> missing = new TreeSet<>(targets.keySet());
    missing.removeAll(checkpoint.names());
    if (!missing.isEmpty()) {
      throw new CheckpointException(checkpoint.folder() + " lacks the tensors " + missing);
    }
    checkpoint.load(targets, false); // the other stages' tensors are there besides
    Map<String, Double> scalars = new TreeMap<>();
    saved.forEach(
        (name, value) -> {
          if (name.startsWith(OPTIMIZER)) {
            scalars.put(name.substring(OPTIMIZER.length()), value);
          }
        });
    optimizer.loadScalars(scalars);
    return new Position(checkpoint.step(), Math.round(samples));
  }

  private static String text(@Nullable Double value) {
    return value == null ? "none" : value == Math.rint(value) ? "" + value.longValue() : "" + value;
  }
}
