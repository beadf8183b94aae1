package dev.weft.parallel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.offset;

import dev.weft.dtensor.DTensor;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.util.List;

/** Models and data that are the same on every rank, and what one rank makes of them. */
public final class SmallModels {
  private SmallModels() {}

  public static Tensor weights(int seed, int... shape) {
    int n = 1;
    long[] sizes = new long[shape.length];
    for (int i = 0; i < shape.length; i++) {
      n *= shape[i];
      sizes[i] = shape[i];
    }
    float[] w = new float[n];
    for (int k = 0; k < n; k++) {
      w[k] = (float) Math.sin(1 + seed * 31 + k) / shape[shape.length - 1];
    }
    return Tensor.of(w, sizes);
  }

  /** A chain of layers whose backward goes from the last to the first. */
  public static Sequential chain(int layers, int width) {
    Module[] parts = new Module[layers];
    for (int i = 0; i < layers; i++) {
      parts[i] = new Linear(weights(i, width, width), null);
    }
    return new Sequential(parts);
  }

  /** Blocks of two layers with biases, of sizes that do not divide. */
  public static Sequential blocks(int count, int width, int hidden) {
    Module[] parts = new Module[count];
    for (int i = 0; i < count; i++) {
      parts[i] =
          new Sequential(
              new Linear(weights(10 * i, hidden, width), weights(10 * i + 1, hidden)),
              new Function(Activations::tanh),
              new Linear(weights(10 * i + 2, width, hidden), weights(10 * i + 3, width)));
    }
    return new Sequential(parts);
  }

  public static Tensor rows(int from, int to, int width) {
    float[] x = new float[(to - from) * width];
    for (int i = 0; i < x.length; i++) {
      x[i] = (float) Math.cos(from * width + i);
    }
    return Tensor.of(x, to - from, width);
  }

  public static Tensor loss(Tensor y) {
    return Reductions.mean(Pointwise.mul(y, y));
  }

  /** A tensor's whole value; a collective where it is distributed. */
  public static float[] values(Tensor t) {
    return Autograd.noGrad(() -> (t instanceof DTensor d ? d.fullTensor() : t).toFloatArray());
  }

  public static List<float[]> gradients(Module m) {
    return m.parameters().stream().map(p -> values(p.grad())).toList();
  }

  public static List<float[]> parameters(Module m) {
    return m.parameters().stream().map(SmallModels::values).toList();
  }

  public static void assertClose(List<float[]> got, List<float[]> want) {
    assertThat(got).hasSameSizeAs(want);
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(i)).containsExactly(want.get(i), offset(1e-6f));
    }
  }
}
