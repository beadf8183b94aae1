package dev.weft.c10d;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cuda.CudaCopies;
import dev.weft.tensor.memory.Memory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Collectives of small objects: settings, names, counters. Any thread of a rank may call them; like
 * all collectives, every member must, in the same order. They return when they are done.
 *
 * <p>Objects travel as JSON and are read as the class that the caller names, so nothing that
 * arrives can choose what is made. {@code Object.class} gives null, booleans, numbers, text, lists
 * and maps; a record or bean gives itself. Roots are global ranks; a null group is the world. On a
 * rank that is no member nothing happens, and the result is empty or null.
 */
public final class ObjectCollectives {
  private static final CollectiveOptions SYNC = CollectiveOptions.SYNC;

  private ObjectCollectives() {}

  /**
   * Every rank's object, by group rank.
   *
   * @throws IllegalArgumentException if the object cannot be written as JSON
   */
  public static <T> List<@Nullable T> allGatherObject(
      @Nullable T value, Class<T> type, @Nullable ProcessGroup group) {
    String name = "all_gather_object";
    ProcessGroup g = orWorld(group);
    if (outside(g, name)) {
      return List.of();
    }
    byte[] own = ObjectCodec.encode(name, "value", value);
    long[] lengths = gatherLengths(g, own.length);
    int widest = widest(lengths);
    StridedTensor out = Tensors.empty(DType.UINT8, g.size(), widest);
    StridedTensor all = away(g, out);
    g.allGatherIntoTensor(all, away(g, padded(own, widest)), SYNC).await();
    home(all, out);
    return split(name, g, out, lengths, widest, type);
  }

  /**
   * The root's objects; other ranks' arguments only say how many they expect.
   *
   * @throws IllegalArgumentException if an object cannot be written as JSON
   * @throws MismatchException if ranks expect different numbers of objects
   */
  public static <T> List<@Nullable T> broadcastObjectList(
      List<? extends @Nullable T> values, Class<T> type, int root, @Nullable ProcessGroup group) {
    String name = "broadcast_object_list";
    ProcessGroup g = orWorld(group);
    if (outside(g, name)) {
      return List.of();
    }
    int source = g.groupRank(root);
    List<byte[]> texts = new ArrayList<>();
    for (int i = 0; g.rank() == source && i < values.size(); i++) {
      texts.add(ObjectCodec.encode(name, "values[" + i + "]", values.get(i)));
    }
    long[] lengths = new long[values.size()];
    for (int i = 0; i < texts.size(); i++) {
      lengths[i] = texts.get(i).length;
    }
    lengths = broadcastLongs(g, lengths, source);
    StridedTensor data = Tensors.empty(DType.UINT8, Arrays.stream(lengths).sum());
    long at = data.dataAddress();
    for (byte[] text : texts) {
      Memory.put(at, text, 0, text.length);
      at += text.length;
    }
    StridedTensor travelling = away(g, data);
    g.broadcast(travelling, source, SYNC).await();
    home(travelling, data);
    List<@Nullable T> out = new ArrayList<>();
    long from = data.dataAddress();
    for (long length : lengths) {
      out.add(ObjectCodec.decode(name, bytes(from, length), root, type));
      from += length;
    }
    return out;
  }

  /**
   * Every rank's object at the root, by group rank; an empty list elsewhere.
   *
   * @throws IllegalArgumentException if the object cannot be written as JSON
   */
  public static <T> List<@Nullable T> gatherObject(
      @Nullable T value, Class<T> type, int root, @Nullable ProcessGroup group) {
    String name = "gather_object";
    ProcessGroup g = orWorld(group);
    if (outside(g, name)) {
      return List.of();
    }
    int target = g.groupRank(root);
    byte[] own = ObjectCodec.encode(name, "value", value);
    long[] lengths = gatherLengths(g, own.length);
    int widest = widest(lengths);
    if (g.rank() != target) {
      g.gather(away(g, padded(own, widest)), null, target, SYNC).await();
      return List.of();
    }
    StridedTensor out = Tensors.empty(DType.UINT8, g.size(), widest);
    StridedTensor all = away(g, out);
    g.gather(away(g, padded(own, widest)), rows(all, g.size(), widest), target, SYNC).await();
    home(all, out);
    return split(name, g, out, lengths, widest, type);
  }

  /**
   * This rank's object of the root's list, which has one for each rank; elsewhere the argument is
   * null.
   *
   * @throws IllegalArgumentException if the root's list has another length, if another rank gives
   *     one, or if an object cannot be written as JSON
   */
  public static <T> @Nullable T scatterObject(
      @Nullable List<? extends @Nullable T> values,
      Class<T> type,
      int root,
      @Nullable ProcessGroup group) {
    String name = "scatter_object_list";
    ProcessGroup g = orWorld(group);
    if (outside(g, name)) {
      return null;
    }
    int source = g.groupRank(root);
    List<byte[]> texts = new ArrayList<>();
    long[] lengths = new long[g.size()];
    if (g.rank() == source) {
      if (values == null || values.size() != g.size()) {
        throw new IllegalArgumentException(
            name
                + ": values has "
                + (values == null ? "no" : values.size())
                + " objects on the root, rank "
                + root
                + "; expected one for each of the "
                + g.size()
                + " ranks");
      }
      for (int i = 0; i < values.size(); i++) {
        texts.add(ObjectCodec.encode(name, "values[" + i + "]", values.get(i)));
        lengths[i] = texts.get(i).length;
      }
    }
    lengths = broadcastLongs(g, lengths, source);
    int widest = widest(lengths);
    StridedTensor mine = Tensors.empty(DType.UINT8, widest);
    List<Tensor> inputs = texts.stream().<Tensor>map(t -> away(g, padded(t, widest))).toList();
    StridedTensor part = away(g, mine);
    g.scatter(part, g.rank() == source ? inputs : null, source, SYNC).await();
    home(part, mine);
    byte[] text = bytes(mine.dataAddress(), lengths[g.rank()]);
    return ObjectCodec.decode(name, text, root, type);
  }

  private static ProcessGroup orWorld(@Nullable ProcessGroup group) {
    return group == null ? Distributed.world() : group;
  }

  private static boolean outside(ProcessGroup g, String name) {
    if (!g.isMember()) {
      NonMembers.warn(g, name);
    }
    return !g.isMember();
  }

  private static long[] gatherLengths(ProcessGroup g, long own) {
    StridedTensor in = Tensors.empty(DType.INT64, 1);
    Memory.putLong(in.dataAddress(), own);
    StridedTensor out = Tensors.empty(DType.INT64, g.size());
    StridedTensor all = away(g, out);
    g.allGatherIntoTensor(all, away(g, in), SYNC).await();
    return all.toLongArray();
  }

  private static long[] broadcastLongs(ProcessGroup g, long[] values, int source) {
    StridedTensor t = Tensors.empty(DType.INT64, values.length);
    Memory.put(t.dataAddress(), values, 0, values.length);
    StridedTensor travelling = away(g, t);
    g.broadcast(travelling, source, SYNC).await();
    return travelling.toLongArray();
  }

  /** A tensor of the host where the group can take it: itself, or a copy on the group's device. */
  private static StridedTensor away(ProcessGroup g, StridedTensor t) {
    Device device = g.controlDevice();
    return device.isCpu() ? t : CudaCopies.to(t, device);
  }

  /** Brings the values back. */
  private static void home(StridedTensor from, StridedTensor to) {
    if (from != to) {
      Regions.copy(from, to);
    }
  }

  private static int widest(long[] lengths) {
    return Math.toIntExact(Arrays.stream(lengths).max().orElse(0));
  }

  private static StridedTensor padded(byte[] text, int width) {
    StridedTensor t = Tensors.empty(DType.UINT8, width);
    Memory.fill(t.dataAddress(), width, (byte) 0);
    Memory.put(t.dataAddress(), text, 0, text.length);
    return t;
  }

  private static List<Tensor> rows(StridedTensor all, int rows, int width) {
    List<Tensor> out = new ArrayList<>(rows);
    for (int r = 0; r < rows; r++) {
      out.add(all.withLayout(new long[] {width}, new long[] {1}, (long) r * width));
    }
    return out;
  }

  private static byte[] bytes(long address, long length) {
    byte[] out = new byte[Math.toIntExact(length)];
    Memory.get(address, out, 0, out.length);
    return out;
  }

  private static <T> List<@Nullable T> split(
      String name, ProcessGroup g, StridedTensor all, long[] lengths, int width, Class<T> type) {
    List<@Nullable T> out = new ArrayList<>();
    for (int r = 0; r < lengths.length; r++) {
      byte[] text = bytes(all.dataAddress() + (long) r * width, lengths[r]);
      out.add(ObjectCodec.decode(name, text, g.globalRank(r), type));
    }
    return out;
  }
}
