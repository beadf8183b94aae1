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

  /** The shape that the rank at a coordinate holds. */
  static long[] localShape(
      long[] shape, int[] mesh, List<? extends Placement> placements, int[] coordinate) {
    long[] local = shape.clone();
    for (int m = 0; m < mesh.length; m++) {
      if (placements.get(m) instanceof Shard s) {
        local[s.dim()] = length(local[s.dim()], mesh[m], coordinate[m]);
      }
    }
    return local;
  }

  /** The same, without the cut that one mesh dimension makes. */
  static long[] localShapeWithout(
      long[] shape, int[] mesh, List<? extends Placement> placements, int[] coordinate, int skip) {
    long[] local = shape.clone();
    for (int m = 0; m < mesh.length; m++) {
      if (m != skip && placements.get(m) instanceof Shard s) {
        local[s.dim()] = length(local[s.dim()], mesh[m], coordinate[m]);
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
    long[] local = shape.clone();
    long[] offset = new long[shape.length];
    for (int m = 0; m < mesh.length; m++) {
      if (placements.get(m) instanceof Shard s) {
        int d = s.dim();
        long start = start(local[d], mesh[m], coordinate[m]);
        local[d] = length(local[d], mesh[m], coordinate[m]);
        offset[d] = local[d] == 0 ? shape[d] : offset[d] + start;
      }
    }
    return offset;
  }
}
