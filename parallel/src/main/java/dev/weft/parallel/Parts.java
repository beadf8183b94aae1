package dev.weft.parallel;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorInternals;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;

/** This rank's memory of tensors, and its way in and out of flat buffers. */
final class Parts {
  private Parts() {}

  /** This rank's memory of a plain or distributed tensor, without history. */
  static StridedTensor of(Tensor t) {
    return t instanceof DTensor d ? (StridedTensor) DTensorInternals.local(d) : (StridedTensor) t;
  }

  /** Part of a flat buffer, in the shape of a tensor. */
  static StridedTensor piece(StridedTensor flat, long at, long... shape) {
    long n = Shapes.numel(shape);
    return n == 0
        ? flat.withLayout(shape, Shapes.contiguousStrides(shape), 0)
        : Regions.reshaped(Regions.narrow(flat, 0, at, n), shape);
  }

  /** Copies; nothing where there is nothing. */
  static void copy(StridedTensor from, StridedTensor to) {
    if (from.numel() > 0) {
      Regions.copy(from, to);
    }
  }
}
