package dev.weft.parallel.health;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Replicate;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.memory.Memory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Checks that replicas of tensors are equal to the bit, by checksums. Used by the thread that acts
 * for a rank, on all ranks alike.
 *
 * <p>A tensor is read once and eight bytes of it travel. The checksum is CRC-32C: two tensors that
 * differ go unnoticed once in 2^32. Which groups have replicas follows from the caller, for all
 * tensors (those of data parallelism), and for a {@link DTensor} from its {@code Replicate}
 * placements as well, whose local parts are compared.
 */
public final class ReplicaCheck {
  private static final int CHUNK = 1 << 16;

  private final List<ProcessGroup> replicas;

  private ReplicaCheck(List<ProcessGroup> replicas) {
    this.replicas = replicas;
  }

  /**
   * A check.
   *
   * @param replicas groups over which all tensors are the same, in the same order on all ranks
   */
  public static ReplicaCheck over(ProcessGroup... replicas) {
    return new ReplicaCheck(List.of(replicas));
  }

  /**
   * Compares tensors, an all-gather in each group.
   *
   * @param tensors by name, such as a module's {@code namedParameters()}; the same names in the
   *     same order on the members of a group
   * @return what differs in the groups that this rank is in, the same on all members of each
   * @throws IllegalArgumentException if the members have tensors of other names
   */
  public List<Desync> differences(Map<String, Tensor> tensors) {
    Map<List<Integer>, ProcessGroup> groups = new LinkedHashMap<>();
    Map<List<Integer>, List<String>> names = new LinkedHashMap<>();
    for (Map.Entry<String, Tensor> e : tensors.entrySet()) {
      for (ProcessGroup g : groupsOf(e.getValue())) {
        if (g.isMember() && g.size() > 1) {
          ProcessGroup one = groups.computeIfAbsent(g.ranks(), ranks -> g);
          List<String> of = names.computeIfAbsent(one.ranks(), ranks -> new ArrayList<>());
          if (of.isEmpty() || !of.get(of.size() - 1).equals(e.getKey())) {
            of.add(e.getKey());
          }
        }
      }
    }
    Map<String, Long> sums = new LinkedHashMap<>();
    tensors.forEach((name, t) -> sums.put(name, checksum(t)));
    List<Desync> out = new ArrayList<>();
    groups.forEach(
        (ranks, g) -> out.addAll(compare(g, names.getOrDefault(ranks, List.of()), sums)));
    return out;
  }

  /**
   * Compares tensors, and throws if any differs. On ranks whose groups are equal nothing happens.
   *
   * @param step for the message
   * @throws DesyncException on the members of groups in which something differs
   */
  public void check(long step, Map<String, Tensor> tensors) {
    List<Desync> found = differences(tensors);
    if (!found.isEmpty()) {
      throw new DesyncException(step, found);
    }
  }

  private List<ProcessGroup> groupsOf(Tensor tensor) {
    List<ProcessGroup> out = new ArrayList<>(replicas);
    if (tensor instanceof DTensor d) {
      for (int dim = 0; dim < d.mesh().ndim(); dim++) {
        if (d.placements().get(dim) instanceof Replicate) {
          out.add(d.mesh().getGroup(dim));
        }
      }
    }
    return out;
  }

  private static List<Desync> compare(ProcessGroup g, List<String> names, Map<String, Long> sums) {
    int n = names.size();
    long[] own = new long[n + 1];
    own[0] = crc(String.join("\n", names).getBytes(StandardCharsets.UTF_8));
    for (int i = 0; i < n; i++) {
      own[i + 1] = sums.getOrDefault(names.get(i), 0L);
    }
    long[] all;
    try (TensorScope scope = TensorScope.open()) {
      Device device = g.controlDevice();
      Tensor gathered = Tensor.of(new long[g.size() * (n + 1)], g.size(), n + 1).to(device);
      Work unused = g.allGatherIntoTensor(gathered, Tensor.of(own, n + 1).to(device));
      all = gathered.toLongArray();
    }
    List<Desync> out = new ArrayList<>();
    for (int i = 0; i <= n; i++) {
      Map<Long, List<Integer>> versions = new LinkedHashMap<>();
      for (int r = 0; r < g.size(); r++) {
        versions
            .computeIfAbsent(all[r * (n + 1) + i], sum -> new ArrayList<>())
            .add(g.globalRank(r));
      }
      if (versions.size() > 1 && i == 0) {
        throw new IllegalArgumentException(
            "tensors have other names on ranks "
                + versions.values()
                + " of group '"
                + g.name()
                + "'; expected the same ones in the same order, here "
                + names);
      }
      if (versions.size() > 1) {
        List<List<Integer>> most = new ArrayList<>(versions.values());
        most.sort((a, b) -> Integer.compare(b.size(), a.size()));
        out.add(new Desync(names.get(i - 1), g.name(), most));
      }
    }
    return out;
  }

  private static long crc(byte[] bytes) {
    CRC32C sum = new CRC32C();
    sum.update(bytes, 0, bytes.length);
    return sum.getValue();
  }

  /** Of the bytes of this rank's part, in row-major order. */
  private static long checksum(Tensor tensor) {
    try (TensorScope scope = TensorScope.open()) {
      return Autograd.noGrad(
          () -> {
            Tensor part = tensor instanceof DTensor d ? d.toLocal() : tensor;
            StridedTensor host = part.to(Device.CPU).contiguous().plain();
            long address = host.numel() == 0 ? 0 : host.dataAddress();
            long left = host.numel() * host.dtype().byteSize();
            CRC32C sum = new CRC32C();
            byte[] chunk = new byte[(int) Math.min(left, CHUNK)];
            while (left > 0) {
              int count = (int) Math.min(left, CHUNK);
              Memory.get(address, chunk, 0, count);
              sum.update(chunk, 0, count);
              address += count;
              left -= count;
            }
            return sum.getValue();
          });
    }
  }
}
