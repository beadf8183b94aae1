package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Creation;
import java.util.List;

/**
 * Distributed tensors of constant values, made part by part without communication. A Partial
 * placement fills every contribution with the value.
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

  /** A tensor of arbitrary content. */
  public static DTensor empty(
      DeviceMesh mesh, List<? extends Placement> placements, DType dtype, long... shape) {
    List<Placement> normal = DTensorSpec.normalize(mesh, placements, Shapes.check(shape).length);
    DTensorSpec spec = DTensorSpec.of(mesh, normal, shape, dtype);
    return new DTensor(
        spec, Tensors.empty(dtype, Device.parse(mesh.deviceType()), spec.localShape()));
  }
}
