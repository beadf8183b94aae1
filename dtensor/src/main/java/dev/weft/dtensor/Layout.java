package dev.weft.dtensor;

import java.util.List;

/**
 * Where the parts of a sharded tensor lie: ceil-chunks, left to right over the mesh dimensions. See
 * {@code docs/semantics/layout.md}.
 */
final class Layout {
  private Layout() {}

  /**
   * The chunk size of {@code size} elements over {@code n} ranks; all chunks but the last have it.
   */
  static long chunk(long size, int n) {
    return (size + n - 1) / n;
  }

  /** Where a rank's chunk starts; the size for an empty one. */
  static long start(long size, int n, int index) {
    return Math.min(size, chunk(size, n) * index);
  }

  /** The length of a rank's chunk. */
  static long length(long size, int n, int index) {
    return Math.min(size, chunk(size, n) * (index + 1L)) - start(size, n, index);
  }

  /** The length of a rank's part under a placement that cuts. */
  static long length(Placement p, long size, int n, int index) {
    return p instanceof Shard
        ? length(size, n, index)
        : Cuts.length(Cuts.ranges(p, size, n, index));
  }

  /** The shape that the rank at a coordinate holds. */
  static long[] localShape(
      long[] shape, int[] mesh, List<? extends Placement> placements, int[] coordinate) {
    return localShapeWithout(shape, mesh, placements, coordinate, -1);
  }

  /** The same, without the cut that one mesh dimension makes. */
  static long[] localShapeWithout(
      long[] shape, int[] mesh, List<? extends Placement> placements, int[] coordinate, int skip) {
    long[] local = shape.clone();
    for (int m = 0; m < mesh.length; m++) {
      int d = placements.get(m).shardDim();
      if (m != skip && d >= 0) {
        local[d] = length(placements.get(m), local[d], mesh[m], coordinate[m]);
      }
    }
    return local;
  }

  /**
   * Where the part of a coordinate starts. Once a part is empty its offset is the size of the
   * tensor dimension.
   */
  static long[] globalOffset(
      long[] shape, int[] mesh, List<? extends Placement> placements, int[] coordinate) {
    long[] offset = new long[shape.length];
    for (int d = 0; d < shape.length; d++) {
      List<Cuts.Range> held = held(shape[d], d, mesh, placements, coordinate);
      offset[d] = held.isEmpty() ? shape[d] : held.get(0).start();
    }
    return offset;
  }

  /** The stretches of one tensor dimension that the part of a coordinate covers, in order. */
  static List<Cuts.Range> held(
      long size, int dim, int[] mesh, List<? extends Placement> placements, int[] coordinate) {
    List<Cuts.Range> held = List.of(new Cuts.Range(0, size));
    for (int m = 0; m < mesh.length; m++) {
      Placement p = placements.get(m);
      if (p.isShard(dim)) {
        held = Cuts.within(held, Cuts.ranges(p, Cuts.length(held), mesh[m], coordinate[m]));
      }
    }
    return held;
  }
}
