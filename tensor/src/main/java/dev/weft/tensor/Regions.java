package dev.weft.tensor;

import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cpu.FillKernels;
import dev.weft.tensor.cuda.CudaCopies;
import dev.weft.tensor.cuda.CudaFills;

/**
 * Parts of plain tensors and copies between them, below the dispatcher: no autograd, no
 * interception. For collectives and layouts that move blocks. Any thread.
 */
public final class Regions {
  private Regions() {}

  /** A range of a dimension, as a view. */
  public static StridedTensor narrow(StridedTensor t, int dim, long start, long length) {
    long[] shape = t.shape().clone();
    shape[dim] = length;
    return t.withLayout(
        shape, t.strides(), length == 0 ? t.offset() : t.offset() + start * t.strides()[dim]);
  }

  /** The k-th of several equal blocks that lie one after the other in a contiguous tensor. */
  public static StridedTensor block(StridedTensor blocks, long[] blockShape, int k) {
    return blocks.withLayout(
        blockShape,
        Shapes.contiguousStrides(blockShape),
        blocks.offset() + k * Shapes.numel(blockShape));
  }

  /** A contiguous tensor's memory as another shape of as many elements. */
  public static StridedTensor reshaped(StridedTensor t, long... shape) {
    if (!t.isContiguous() || Shapes.numel(shape) != t.numel()) {
      throw new IllegalArgumentException(
          t.describe() + " cannot be seen as " + java.util.Arrays.toString(shape));
    }
    return t.withLayout(shape, Shapes.contiguousStrides(shape), t.offset());
  }

  /** Copies values; equal shapes, any strides, dtypes and devices. */
  public static void copy(StridedTensor from, StridedTensor to) {
    if (from.device().isCpu() && to.device().isCpu()) {
      CopyKernels.copy(from, to);
    } else {
      CudaCopies.copy(from, to);
    }
  }

  /** Fills with zeros. */
  public static void zero(StridedTensor t) {
    if (t.device().isCpu()) {
      FillKernels.fill(t, 0);
    } else {
      CudaFills.fill(t, 0);
    }
  }

  /** The tensor itself where it is contiguous, else a contiguous copy. */
  public static StridedTensor contiguous(StridedTensor t) {
    return t.isContiguous() ? t : copyOf(t);
  }

  /** A contiguous copy. */
  public static StridedTensor copyOf(StridedTensor t) {
    StridedTensor copy = Tensors.empty(t.dtype(), t.device(), t.shape());
    copy(t, copy);
    return copy;
  }
}
