package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import java.util.List;

/**
 * Distributed tensors made part by part without communication. Of a constant, a Partial placement
 * fills every contribution with the value; counted and random values want S or R. Called by the
 * thread that acts for a rank, by all ranks of the mesh alike.
 */
public final class DTensorFactories {
  private DTensorFactories() {}

  /** A tensor filled with a value. */
  public static DTensor full(
      Number value,
      DeviceMesh mesh,
      List<? extends Placement> placements,
      DType dtype,
      long... shape) {
    DTensor t = empty(mesh, placements, dtype, shape);
    StridedTensor local = (StridedTensor) Creation.fullLike(t.local(), value);
    return new DTensor(t.spec(), local);
  }

  /** A tensor of zeros. */
  public static DTensor zeros(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    return full(0, mesh, placements, dtype, shape);
  }

  /** A tensor of ones. */
  public static DTensor ones(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    return full(1, mesh, placements, dtype, shape);
  }

  /**
   * A vector of start, start + step, ... before end.
   *
   * @param placements S(0) or R on each mesh dimension
   */
  public static DTensor arange(
      Number start,
      Number end,
      Number step,
      DeviceMesh mesh,
      List<? extends Placement> placements,
      DType dtype) {
    DTensor t = empty(mesh, placements, dtype, Creation.arangeSize(start, end, step));
    if (t.spec().hasPartial()) {
      throw new IllegalArgumentException(
          "arange: placements are " + placements + "; expected S(0) or R");
    }
    for (LocalBlock block : t.spec().localBlocks()) {
      count(block.of(t.local()), start, step, block.globalStart()[0]);
    }
    return t;
  }

  /** The numbers from a position on, rounded as those of the whole vector are. */
  private static void count(StridedTensor part, Number start, Number step, long first) {
    Tensor unused;
    if (part.dtype().isFloatingPoint()) {
      StridedTensor index = Tensors.empty(DType.FLOAT64, part.device(), part.shape());
      unused = Creation.arange(index, first, 1);
      Tensor values = Pointwise.add(Pointwise.mul(index, step), start);
      unused = InPlace.copy(part, values);
    } else {
      unused = Creation.arange(part, start.longValue() + first * step.longValue(), step);
    }
  }

  /** Uniform values in [0, 1) from {@link DTensor#generator}, the same whatever the mesh. */
  public static DTensor rand(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    DTensor t = empty(mesh, placements, dtype, shape);
    return (DTensor) Random.uniform(t, 0, 1, null);
  }

  /** Standard normal values from {@link DTensor#generator}, the same whatever the mesh. */
  public static DTensor randn(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    DTensor t = empty(mesh, placements, dtype, shape);
    return (DTensor) Random.normal(t, 0, 1, null);
  }

  /** int64 values in [low, high) from {@link DTensor#generator}, the same whatever the mesh. */
  public static DTensor randint(
      long low, long high, DeviceMesh mesh, List<? extends Placement> placements, long... shape) {
    DTensor t = empty(mesh, placements, DType.INT64, shape);
    return (DTensor) Random.integers(t, low, high, null);
  }

  /** A tensor of arbitrary content. */
  public static DTensor empty(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    List<Placement> normal = DTensorSpec.normalize(mesh, placements, Shapes.check(shape).length);
    DTensorSpec spec = DTensorSpec.of(mesh, normal, shape, dtype);
    return new DTensor(
        spec, Tensors.empty(dtype, Device.parse(mesh.deviceType()), spec.localShape()));
  }
}
