package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A global tensor and how it lies on a mesh. Immutable; equal specs describe equal layouts.
 *
 * @param mesh the ranks
 * @param placements one for each mesh dimension, with non-negative shard dimensions
 * @param shape the global shape
 * @param strides the global strides, as the whole tensor would have them
 * @param dtype the element type
 */
public record DTensorSpec(
    DeviceMesh mesh, List<Placement> placements, long[] shape, long[] strides, DType dtype) {

  /** A spec of row-major strides. */
  public static DTensorSpec of(
      DeviceMesh mesh, List<Placement> placements, long[] shape, DType dtype) {
    return new DTensorSpec(mesh, placements, shape, Shapes.contiguousStrides(shape), dtype);
  }

  /**
   * Resolves negative dimensions and refuses placements that do not fit.
   *
   * @throws IllegalArgumentException for a wrong number of placements or a dimension out of range
   */
  public static List<Placement> normalize(
      DeviceMesh mesh, List<? extends Placement> placements, int ndim) {
    if (placements.size() != mesh.ndim()) {
      throw new IllegalArgumentException(
          "placements "
              + placements
              + " must be one for each mesh dimension; "
              + mesh
              + " has "
              + mesh.ndim());
    }
    List<Placement> out = new ArrayList<>();
    for (Placement p : placements) {
      if (p instanceof Shard s) {
        if (s.dim() < -ndim || s.dim() >= ndim) {
          throw new IllegalArgumentException(
              "placement "
                  + s
                  + " is out of range for a tensor of "
                  + ndim
                  + " dimensions (placements "
                  + placements
                  + ")");
        }
        out.add(s.dim() < 0 ? new Shard(s.dim() + ndim) : s);
      } else if (p instanceof StridedShard t
          && (t.dim() < 0 || t.dim() >= ndim || t.pieces() < 1)) {
        throw new IllegalArgumentException(
            "placement " + t + " does not fit a tensor of " + ndim + " dimensions");
      } else {
        out.add(p);
      }
    }
    return List.copyOf(out);
  }

  /** The same tensor placed otherwise. */
  public DTensorSpec with(List<Placement> other) {
    return new DTensorSpec(mesh, other, shape, strides, dtype);
  }

  /** Bytes of the global tensor. */
  public long bytes() {
    return Shapes.numel(shape) * dtype.byteSize();
  }

  /** True where a reduction is outstanding on some mesh dimension. */
  public boolean hasPartial() {
    return placements.stream().anyMatch(Placement::isPartial);
  }

  /** This rank's shape; {@code [0]} outside the mesh. */
  public long[] localShape() {
    int @Nullable [] at = mesh.getCoordinate();
    return at == null ? new long[] {0} : Layout.localShape(shape, mesh.shape(), placements, at);
  }

  /** Where this rank's part starts in the global tensor; empty outside the mesh. */
  public long[] globalOffset() {
    int @Nullable [] at = mesh.getCoordinate();
    return at == null ? new long[0] : Layout.globalOffset(shape, mesh.shape(), placements, at);
  }

  /**
   * This rank's part as blocks of the whole tensor: one, or several where a strided placement gives
   * it positions that do not follow each other; none where it is empty or outside the mesh.
   */
  public List<LocalBlock> localBlocks() {
    return LocalBlock.of(this);
  }

  @Override
  public boolean equals(@Nullable Object o) {
    return o instanceof DTensorSpec s
        && dtype == s.dtype
        && placements.equals(s.placements)
        && Arrays.equals(shape, s.shape)
        && Arrays.equals(strides, s.strides)
        && mesh.equals(s.mesh);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * Arrays.hashCode(shape) + placements.hashCode()) + dtype.hashCode();
  }

  @Override
  public String toString() {
    return dtype + Arrays.toString(shape) + " " + placements + " on " + mesh;
  }
}
