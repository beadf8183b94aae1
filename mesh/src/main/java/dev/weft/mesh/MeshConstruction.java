package dev.weft.mesh;

import dev.weft.c10d.Distributed;
import dev.weft.tensor.Device;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** Checks what a mesh is made of, and makes its root. */
final class MeshConstruction {
  private MeshConstruction() {}

  /** Refuses names that are not one for each size, or occur twice. */
  static void checkUnique(int[] shape, String... names) {
    if (names.length > 0 && names.length != shape.length) {
      throw new IllegalArgumentException(
          "names "
              + Arrays.toString(names)
              + " must be as many as the sizes "
              + Arrays.toString(shape));
    }
    Set<String> seen = new HashSet<>();
    for (String name : names) {
      if (!seen.add(name)) {
        throw new IllegalArgumentException(
            "names " + Arrays.toString(names) + " must be unique; '" + name + "' occurs twice");
      }
    }
  }

  static int[] firstRanks(String deviceType, int[] shape) {
    checkDevice(deviceType);
    long n = 1;
    for (int s : shape) {
      if (s < 1) {
        throw new IllegalArgumentException(
            "shape " + Arrays.toString(shape) + " must have sizes of at least 1");
      }
      n *= s;
      checkCount(n);
    }
    int[] ranks = new int[(int) n];
    Arrays.setAll(ranks, i -> i);
    return ranks;
  }

  private static void checkCount(long n) {
    int world = Distributed.worldSize();
    if (n > world) {
      throw new IllegalArgumentException(
          "the mesh has " + n + " ranks or more; the world has " + world);
    }
  }

  private static void checkDevice(String deviceType) {
    if (deviceType.indexOf(':') >= 0) {
      throw new IllegalArgumentException(
          "deviceType '"
              + deviceType
              + "' must not have an index; each rank chooses its device by itself");
    }
    Device unused = Device.parse(deviceType);
  }

  /** The root of a mesh of these ranks, on the calling rank. */
  static MeshRoot root(String deviceType, int[] ranks, int[] shape, String... names) {
    checkDevice(deviceType);
    long n = 1;
    for (int s : shape) {
      if (s < 1) {
        throw new IllegalArgumentException(
            "shape " + Arrays.toString(shape) + " must have sizes of at least 1");
      }
      n *= s;
    }
    if (n != ranks.length) {
      throw new IllegalArgumentException(
          "shape " + Arrays.toString(shape) + " does not hold " + ranks.length + " ranks");
    }
    if (names.length > 0 && names.length != shape.length) {
      throw new IllegalArgumentException(
          "names "
              + Arrays.toString(names)
              + " must be as many as the sizes "
              + Arrays.toString(shape));
    }
    checkCount(n);
    int world = Distributed.worldSize();
    Set<Integer> seen = new HashSet<>();
    for (int r : ranks) {
      if (r < 0 || r >= world) {
        throw new IllegalArgumentException(
            "rank " + r + " is out of range; expected 0 to " + (world - 1));
      }
      if (!seen.add(r)) {
        throw new IllegalArgumentException(
            "ranks " + Arrays.toString(ranks) + " must be distinct; " + r + " occurs twice");
      }
    }
    MeshDim[] dims = new MeshDim[shape.length];
    int stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      dims[d] = MeshDim.of(names.length == 0 ? null : names[d], shape[d], stride);
      stride *= shape[d];
    }
    MeshRoot root = new MeshRoot(deviceType, ranks.clone(), dims, Distributed.rank());
    if (Device.parse(deviceType).isCuda()) {
      MeshDevices.prepare(root);
    }
    return root;
  }
}
