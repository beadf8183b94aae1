package dev.weft.profiler;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Op;
import org.jspecify.annotations.Nullable;

/** One call of an operator on one thread; holds shapes, no tensors. Written by its thread. */
final class OpEvent {
  final Op op;
  final long[][] shapes;
  final DType[] dtypes;
  final boolean backward;
  final long start;
  long end;
  @Nullable CommEvent comm;
  DeviceLanes.@Nullable Span device;

  OpEvent(Op op, Tensor[] inputs, boolean backward, long start) {
    this.op = op;
    this.backward = backward;
    this.start = start;
    int n = inputs.length;
    shapes = new long[n][];
    dtypes = new DType[n];
    for (int i = 0; i < n; i++) {
      Tensor t = inputs[i];
      shapes[i] = t.shape();
      dtypes[i] = t.dtype();
    }
  }

  /** Bytes of the inputs. */
  long bytes() {
    long sum = 0;
    for (int i = 0; i < shapes.length; i++) {
      sum += Payload.bytes(shapes[i], dtypes[i]);
    }
    return sum;
  }
}
