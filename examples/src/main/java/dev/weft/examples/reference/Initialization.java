package dev.weft.examples.reference;

import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;

/** The initial values of parameters, by name and shape alone. */
public final class Initialization {
  private Initialization() {}

  /**
   * A float32 tensor: matrices are uniform in [-a, a) with a = 1/sqrt(last dimension), biases 0,
   * other vectors 1.
   */
  public static Tensor parameter(long seed, String name, long... shape) {
    float[] values = new float[(int) Shapes.numel(shape)];
    if (shape.length == 1) {
      java.util.Arrays.fill(values, name.endsWith(".bias") ? 0 : 1);
    } else {
      NumberStream stream = new NumberStream(seed, name);
      float a = (float) (1 / Math.sqrt((double) shape[shape.length - 1]));
      for (int i = 0; i < values.length; i++) {
        values[i] = stream.symmetric(i) * a;
      }
    }
    return Tensor.of(values, shape);
  }
}
