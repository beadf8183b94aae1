package dev.weft.mesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.RankContext;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.util.ArrayList;
import java.util.List;

/** What a mesh of CUDA devices does when it is made. Stateless. */
final class MeshDevices {
  private MeshDevices() {}

  /**
   * Makes this rank's device the current one, and, where ranks are bound to devices and the mesh
   * holds all of them, splits the world's communicator along each dimension. Without a GPU the mesh
   * is one of ranks alone, as the fake backend's.
   */
  static void prepare(MeshRoot root) {
    if (!Cuda.isAvailable()) {
      return;
    }
    choose();
    ProcessGroup world = Distributed.world();
    if (RankContext.current().boundDevice() == null || !root.isWorld()) {
      return;
    }
    for (MeshDim dim : root.dims) {
      if (dim.size() > 1 && dim.size() < root.ranks.length) {
        root.adopt(dim, Distributed.splitGroup(world, parts(root, dim), dim.description()));
      }
    }
  }

  /** The device that the rank is bound to, else the one that the launcher's numbers say. */
  private static void choose() {
    RankContext rank = RankContext.current();
    Device bound = rank.boundDevice();
    if (bound != null) {
      Cuda.setDevice(bound.index());
      return;
    }
    if (Cuda.currentDevice() != 0) {
      return; // the program has chosen
    }
    String local = rank.isThreadWorld() ? null : System.getenv("LOCAL_RANK");
    int number = local == null || local.isBlank() ? rank.rank() : Integer.parseInt(local.trim());
    Cuda.setDevice(number % Cuda.deviceCount());
  }

  /** The ranks of all groups along a dimension, ascending in each. */
  private static List<int[]> parts(MeshRoot root, MeshDim dim) {
    List<int[]> parts = new ArrayList<>();
    for (int at = 0; at < root.ranks.length; at++) {
      if (dim.indexOf(at) == 0) {
        int[] part = new int[dim.size()];
        for (int i = 0; i < part.length; i++) {
          part[i] = root.ranks[at + dim.offset(i)];
        }
        java.util.Arrays.sort(part);
        parts.add(part);
      }
    }
    return parts;
  }
}
