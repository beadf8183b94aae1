package dev.weft.dtensor.checkpoint;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.dtensor.LocalBlock;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * A save whose data is on its way to disk. {@link #await} is called by all ranks, from the threads
 * that act for them, in the order of the saves.
 */
public final class PendingSave {
  private final SaveFolder folder;
  private final ProcessGroup world;
  private final Map<String, Double> scalars;
  private final Map<String, Described> tensors;
  private final CompletableFuture<Map<String, Long>> written;
  private @Nullable Checkpoint committed;

  /** A tensor, and the blocks of it that this rank writes, by their keys in the file. */
  private record Described(String dtype, long[] shape, Map<String, LocalBlock> blocks) {}

  private PendingSave(
      SaveFolder folder,
      ProcessGroup world,
      Map<String, Double> scalars,
      Map<String, Described> tensors,
      CompletableFuture<Map<String, Long>> written) {
    this.folder = folder;
    this.world = world;
    this.scalars = scalars;
    this.tensors = tensors;
    this.written = written;
  }

  static PendingSave start(
      Path root, long step, Map<String, Tensor> tensors, Map<String, Double> scalars) {
    if (step < 0) {
      throw new IllegalArgumentException("step is " + step + "; expected 0 or more");
    }
    ProcessGroup world = Distributed.world();
    Map<String, Described> described = new TreeMap<>();
    Map<String, StridedTensor> mine = new LinkedHashMap<>();
    Writers writers = Writers.of(world, tensors);
    new TreeMap<>(tensors)
        .forEach(
            (name, t) -> described.put(name, describe(name, t, writers, tensors.keySet(), mine)));
    SaveFolder folder = new SaveFolder(root, step);
    folder.prepare(world);
    Path file = folder.data(world.rank());
    CompletableFuture<Map<String, Long>> written =
        mine.isEmpty()
            ? CompletableFuture.completedFuture(Map.of())
            : CompletableFuture.supplyAsync(
                () -> {
                  try {
                    return Safetensors.write(file, mine);
                  } finally {
                    mine.values().forEach(Tensor::close);
                  }
                });
    return new PendingSave(folder, world, Map.copyOf(scalars), described, written);
  }

  private static Described describe(
      String name, Tensor t, Writers writers, Set<String> names, Map<String, StridedTensor> mine) {
    Map<String, LocalBlock> written = new LinkedHashMap<>();
    List<LocalBlock> blocks = writers.blocks(name, t);
    if (!blocks.isEmpty()) {
      StridedTensor part = Checkpoint.part(t);
      for (int i = 0; i < blocks.size(); i++) {
        String key = i == 0 ? name : key(name, i, names);
        written.put(key, blocks.get(i));
        mine.put(key, hostCopy(blocks.get(i).of(part)));
      }
    }
    return new Described(t.dtype().label(), t.shape(), written);
  }

  /** What a further block is called in the file: no tensor's name, and no other block's. */
  private static String key(String name, int block, Set<String> names) {
    String key = name + "#" + block;
    while (names.contains(key)) {
      key += "#";
    }
    return key;
  }

  private static StridedTensor hostCopy(StridedTensor t) {
    return TensorScope.outside(
        () -> {
          StridedTensor copy = Tensors.empty(t.dtype(), t.shape());
          Regions.copy(t, copy);
          return copy;
        });
  }

  /** What a rank tells the others. */
  record Report(
      @Nullable String error, Map<String, CheckpointIndex.Entry> tensors, long fileBytes) {}

  /** True when this rank's data is on disk. */
  public boolean isWritten() {
    return written.isDone();
  }

  /**
   * Waits until all ranks have written, and commits.
   *
   * @throws CheckpointException on every rank where one could not write
   */
  public Checkpoint await() {
    Checkpoint done = committed;
    if (done != null) {
      return done;
    }
    try {
      done = commit();
    } finally {
      folder.release(world);
    }
    committed = done;
    return done;
  }

  private Checkpoint commit() {
    List<Report> reports = new ArrayList<>();
    for (byte[] bytes : Exchange.all(world, serialize(report()))) {
      reports.add(parse(bytes));
    }
    for (int r = 0; r < reports.size(); r++) {
      String error = reports.get(r).error();
      if (error != null) {
        throw new CheckpointException("rank " + world.globalRank(r) + " could not save: " + error);
      }
    }
    CheckpointIndex index = index(reports);
    folder.commit(world, index);
    return Checkpoint.of(folder.target(), index);
  }

  private Report report() {
    try {
      Map<String, Long> sums = written.join();
      Map<String, CheckpointIndex.Entry> entries = new LinkedHashMap<>();
      Path file = folder.data(world.rank());
      String fileName = String.valueOf(file.getFileName());
      tensors.forEach(
          (name, d) -> {
            List<CheckpointIndex.Piece> pieces = new ArrayList<>();
            d.blocks()
                .forEach(
                    (key, block) ->
                        pieces.add(
                            new CheckpointIndex.Piece(
                                fileName,
                                key.equals(name) ? null : key,
                                block.globalStart(),
                                block.shape(),
                                Objects.requireNonNull(sums.get(key)))));
            // Of a tensor without elements nothing is written, and it is there all the same.
            if (!pieces.isEmpty() || Shapes.numel(d.shape()) == 0) {
              entries.put(name, new CheckpointIndex.Entry(d.dtype(), d.shape(), pieces));
            }
          });
      return new Report(null, entries, sums.isEmpty() ? 0 : file.toFile().length());
    } catch (CompletionException e) {
      return new Report(String.valueOf(e.getCause()), Map.of(), 0);
    }
  }

  private static byte[] serialize(Report report) {
    try {
      return Checkpoint.MAPPER.writeValueAsBytes(report);
    } catch (IOException e) {
      throw new CheckpointException("cannot describe what was saved: " + e.getMessage(), e);
    }
  }

  private static Report parse(byte[] bytes) {
    try {
      return Checkpoint.MAPPER.readValue(bytes, Report.class);
    } catch (IOException e) {
      throw new CheckpointException("a rank's report cannot be read: " + e.getMessage(), e);
    }
  }

  private CheckpointIndex index(List<Report> reports) {
    Map<String, CheckpointIndex.Entry> entries = new TreeMap<>();
    Map<String, Long> files = new TreeMap<>();
    for (Report r : reports) {
      r.tensors()
          .forEach(
              (name, e) -> {
                entries
                    .computeIfAbsent(
                        name,
                        n -> new CheckpointIndex.Entry(e.dtype(), e.shape(), new ArrayList<>()))
                    .pieces()
                    .addAll(e.pieces());
                e.pieces().forEach(piece -> files.put(piece.file(), r.fileBytes()));
              });
    }
    return new CheckpointIndex(
        CheckpointIndex.FORMAT, folder.step(), entries, new TreeMap<>(scalars), files);
  }
}
