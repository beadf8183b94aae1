package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.SerializationFeature;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.LocalBlock;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Which of the ranks that hold a block writes it. Where all ranks save the same names, placements
 * alone say so. Where they do not (the stages of a pipeline), ranks tell each other what they hold,
 * and the lowest holder of a block writes it.
 */
final class Writers {
  // The lowest rank that holds a block; null where placements decide.
  private final @Nullable Map<Held, Integer> lowest;
  private final int rank;

  private Writers(@Nullable Map<Held, Integer> lowest, int rank) {
    this.lowest = lowest;
    this.rank = rank;
  }

  /** A block of a tensor, compared by its place. */
  private record Held(String name, List<Long> start, List<Long> shape) {
    static Held of(String name, long[] start, long[] shape) {
      return new Held(
          name, Arrays.stream(start).boxed().toList(), Arrays.stream(shape).boxed().toList());
    }
  }

  /** What a rank says about a tensor: its blocks as pairs of start and shape. */
  record Holding(String dtype, long[] shape, List<long[][]> blocks) {}

  /**
   * Called by all ranks alike.
   *
   * @throws CheckpointException on all ranks if one name is saved with two shapes or dtypes
   */
  static Writers of(ProcessGroup world, Map<String, Tensor> tensors) {
    byte[] mine = digest(new TreeSet<>(tensors.keySet()));
    if (Exchange.all(world, mine).stream().allMatch(other -> Arrays.equals(other, mine))) {
      return new Writers(null, world.rank());
    }
    Map<String, Holding> holdings = new TreeMap<>();
    tensors.forEach(
        (name, t) -> {
          List<long[][]> blocks = new ArrayList<>();
          held(name, t).forEach(b -> blocks.add(new long[][] {b.globalStart(), b.shape()}));
          holdings.put(name, new Holding(t.dtype().label(), t.shape(), blocks));
        });
    Map<Held, Integer> lowest = new HashMap<>();
    Map<String, Holding> known = new HashMap<>();
    List<byte[]> all = Exchange.all(world, serialize(holdings));
    for (int r = 0; r < all.size(); r++) {
      int holder = r;
      parse(all.get(r))
          .forEach(
              (name, h) -> {
                checkSame(name, known.putIfAbsent(name, h), h, world.globalRank(holder));
                h.blocks.forEach(b -> lowest.putIfAbsent(Held.of(name, b[0], b[1]), holder));
              });
    }
    return new Writers(lowest, world.rank());
  }

  private static void checkSame(String name, @Nullable Holding first, Holding h, int holder) {
    if (first != null && (!first.dtype.equals(h.dtype) || !Arrays.equals(first.shape, h.shape))) {
      throw new CheckpointException(
          "save: tensor '%s' is %s%s on rank %d and %s%s on a lower rank; expected one form"
              .formatted(
                  name,
                  h.dtype,
                  Arrays.toString(h.shape),
                  holder,
                  first.dtype,
                  Arrays.toString(first.shape)));
    }
  }

  /** The blocks of a tensor that this rank writes. */
  List<LocalBlock> blocks(String name, Tensor t) {
    Map<Held, Integer> holders = lowest;
    List<LocalBlock> blocks = held(name, t);
    if (holders != null) {
      Integer mine = rank;
      return blocks.stream()
          .filter(b -> mine.equals(holders.get(Held.of(name, b.globalStart(), b.shape()))))
          .toList();
    }
    boolean first = t instanceof DTensor d ? isFirstCopy(d) : Distributed.rank() == 0;
    return first ? blocks : List.of();
  }

  private static List<LocalBlock> held(String name, Tensor t) {
    if (!(t instanceof DTensor d)) {
      return List.of(new LocalBlock(new long[t.ndim()], new long[t.ndim()], t.shape()));
    }
    if (d.spec().hasPartial()) {
      throw new IllegalArgumentException(
          "save: tensor '" + name + "' has an outstanding reduction: " + d.describe());
    }
    return d.spec().localBlocks();
  }

  /** Of the ranks that hold the same part, the first along every dimension of replicas. */
  private static boolean isFirstCopy(DTensor d) {
    DeviceMesh mesh = d.mesh();
    int[] at = mesh.getCoordinate();
    if (at == null || !mesh.isFirstPart()) {
      return false;
    }
    for (int m = 0; m < at.length; m++) {
      if (d.placements().get(m).isReplicate() && at[m] != 0) {
        return false;
      }
    }
    return true;
  }

  private static byte[] digest(SortedSet<String> names) {
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      for (String name : names) {
        sha.update(name.getBytes(StandardCharsets.UTF_8));
        sha.update((byte) 0);
      }
      return sha.digest();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  private static byte[] serialize(Map<String, Holding> holdings) {
    try {
      return Checkpoint.MAPPER
          .writer()
          .without(SerializationFeature.INDENT_OUTPUT)
          .writeValueAsBytes(holdings);
    } catch (IOException e) {
      throw new CheckpointException("cannot describe what is held: " + e.getMessage(), e);
    }
  }

  private static Map<String, Holding> parse(byte[] bytes) {
    try {
      return Checkpoint.MAPPER.readValue(bytes, new TypeReference<>() {});
    } catch (IOException e) {
      throw new CheckpointException("what a rank holds cannot be read: " + e.getMessage(), e);
    }
  }
}
