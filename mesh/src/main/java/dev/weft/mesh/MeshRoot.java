package dev.weft.mesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.ProcessGroup;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the meshes cut from one mesh share on one rank: the ranks, this rank's position, the groups
 * made so far and the flattened dimensions.
 */
final class MeshRoot {
  final String deviceType;
  final int[] ranks;
  final MeshDim[] dims;
  final int worldRank;
  private final int worldSize;
  // Position of this rank in the row-major order of the mesh, or -1 outside.
  final int position;
  private final Map<String, MeshDim> flattened = new LinkedHashMap<>();
  private final Map<String, ProcessGroup> groups = new LinkedHashMap<>();

  MeshRoot(String deviceType, int[] ranks, MeshDim[] dims, int worldRank) {
    this.deviceType = deviceType;
    this.ranks = ranks;
    this.dims = dims;
    this.worldRank = worldRank;
    this.worldSize = Distributed.worldSize();
    int at = -1;
    for (int i = 0; i < ranks.length; i++) {
      if (ranks[i] == worldRank) {
        at = i;
      }
    }
    this.position = at;
  }

  // Caches of upper modules; they live as long as the mesh.
  final java.util.concurrent.ConcurrentHashMap<Class<?>, Object> attachments =
      new java.util.concurrent.ConcurrentHashMap<>();

  boolean contains() {
    return position >= 0;
  }

  synchronized @Nullable MeshDim flattened(String name) {
    return flattened.get(name);
  }

  synchronized boolean isFlattened(MeshDim dim) {
    return flattened.values().stream().anyMatch(d -> d.sameLayout(dim));
  }

  /** Whether the mesh holds every rank. */
  boolean isWorld() {
    return ranks.length == worldSize;
  }

  synchronized Iterable<String> flattenedNames() {
    return java.util.List.copyOf(flattened.keySet());
  }

  /** Registers a flattened dimension; the same name and layout twice is the same dimension. */
  synchronized MeshDim register(String name, MeshDim dim) {
    for (MeshDim d : dims) {
      if (name.equals(d.name())) {
        if (d.sameLayout(dim)) {
          return d;
        }
        throw new IllegalArgumentException(
            "flatten: name '" + name + "' is a dimension of the mesh already; choose another");
      }
    }
    MeshDim before = flattened.get(name);
    if (before != null && !before.sameLayout(dim)) {
      throw new IllegalArgumentException(
          "flatten: name '" + name + "' was used for another flattened mesh; choose another");
    }
    flattened.put(name, dim);
    return dim;
  }

  /** The ranks along a dimension through this rank, in the order of the mesh. */
  int[] ranksAlong(MeshDim dim) {
    int base = position - dim.offset(dim.indexOf(position));
    int[] along = new int[dim.size()];
    for (int i = 0; i < along.length; i++) {
      along[i] = ranks[base + dim.offset(i)];
    }
    return along;
  }

  /** Takes the group along a dimension that was made with the mesh. */
  synchronized void adopt(MeshDim dim, ProcessGroup group) {
    int[] members = ranksAlong(dim);
    Arrays.sort(members);
    groups.put(Arrays.toString(members), group);
  }

  /** The group along a dimension, made at first use; its members are in ascending order. */
  synchronized ProcessGroup group(MeshDim dim) {
    int[] members = ranksAlong(dim);
    Arrays.sort(members);
    String key = Arrays.toString(members);
    ProcessGroup group = groups.get(key);
    if (group == null) {
      List<Integer> list = Arrays.stream(members).boxed().toList();
      group =
          list.equals(Distributed.world().ranks())
              ? Distributed.world()
              : Distributed.newGroup(list, GroupOptions.DEFAULT.withDescription(dim.description()));
      groups.put(key, group);
    }
    return group;
  }
}
