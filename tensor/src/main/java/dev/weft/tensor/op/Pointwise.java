package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.PointwiseKernels;
import org.jspecify.annotations.Nullable;

/** Elementwise operators with broadcasting. Any thread. */
public final class Pointwise {
  private Pointwise() {}

  private static TensorSpec[] binary(Tensor[] in) {
    return TensorSpec.one(
        Shapes.broadcast(in[0].shape(), in[1].shape()),
        DType.promote(in[0].dtype(), in[1].dtype()));
  }

  private static final Op ADD =
      Op.function("add", (in, a) -> binary(in), (in, out, a) -> PointwiseKernels.add(in, out[0]))
          .gradient(Op.Saves.NOTHING, (ctx, g) -> new @Nullable Tensor[] {g[0], g[0]});

  private static final Op ADD_ =
      Op.inPlace("add_", (in, a) -> binary(in), (in, out, a) -> PointwiseKernels.add(in, out[0]))
          .gradient(Op.Saves.NOTHING, (ctx, g) -> new @Nullable Tensor[] {g[0], g[0]});

  /** a + b. */
  public static Tensor add(Tensor a, Tensor b) {
    return Dispatcher.call(ADD, Attrs.NONE, a, b);
  }

  /** a += b. */
  public static Tensor addInPlace(Tensor a, Tensor b) {
    return Dispatcher.call(ADD_, Attrs.NONE, a, b);
  }
}
