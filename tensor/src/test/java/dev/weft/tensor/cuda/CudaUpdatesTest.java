package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Foreach;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Updates;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Optimiser steps and clipping over many tensors on the GPU against the CPU's. */
@CudaTest
class CudaUpdatesTest {
  /** Parameter, gradient, mean and mean square of tensors of very different sizes. */
  private static Tensor[] many(DType dtype, DType gradient, int count) {
    Tensor[] all = new Tensor[4 * count];
    for (int i = 0; i < count; i++) {
      long n = i % 7 == 3 ? 0 : i % 11 == 5 ? 40_000 : 1 + 37L * i;
      all[4 * i] = normal(i, dtype, n);
      all[4 * i + 1] = normal(100 + i, gradient, n);
      all[4 * i + 2] = normal(200 + i, dtype, n);
      all[4 * i + 3] = Unary.square(normal(300 + i, dtype, n));
    }
    return all;
  }

  @Test
  void adamwOfMoreTensorsThanOneLaunchTakes() {
    for (DType t : Samples.FLOATS) {
      for (DType gradient : new DType[] {t, DType.BFLOAT16}) {
        Tensor[] cpu = many(t, gradient, 200);
        Tensor[] gpu = new Tensor[cpu.length];
        for (int i = 0; i < cpu.length; i++) {
          gpu[i] = cpu[i].to(AgainstCpu.GPU);
        }
        for (int k = 1; k <= 3; k++) {
          Updates.adamwAll(cpu, 1e-2, 0.9, 0.95, 1e-8, 0.1, k);
          Updates.adamwAll(gpu, 1e-2, 0.9, 0.95, 1e-8, 0.1, k);
        }
        for (int i = 0; i < cpu.length; i++) {
          AgainstCpu.close(
              t + " with gradients in " + gradient + ", tensor " + i,
              cpu[i],
              gpu[i],
              Samples.tolerance(t));
        }
      }
    }
  }

  @Test
  void adamwOfViews() {
    for (DType t : Samples.FLOATS) {
      Attrs a = Attrs.of(1e-2, 0.9, 0.95, 1e-8, 0.1, 2L);
      double tolerance = Samples.tolerance(t);
      Tensor square = Unary.square(normal(4, t, 6, 5));
      check(
          "adamw_",
          a,
          tolerance,
          normal(1, t, 6, 5),
          normal(2, t, 6, 5),
          normal(3, t, 6, 5),
          square);
      Tensor g = Views.t(normal(2, t, 5, 6));
      check("adamw_", a, tolerance, normal(1, t, 6, 5), g, normal(3, t, 6, 5), square);
      Tensor whole = normal(1, t, 5, 6);
      Tensor p = Views.t(whole.to(AgainstCpu.GPU));
      Tensor expected = Views.t(whole.copy());
      Tensor[] state = {normal(2, t, 6, 5), normal(3, t, 6, 5), square};
      Tensor[] mine = new Tensor[3];
      for (int i = 0; i < 3; i++) {
        mine[i] = state[i].to(AgainstCpu.GPU);
      }
      Tensor unused = Updates.adamw(p, mine[0], mine[1], mine[2], 1e-2, 0.9, 0.95, 1e-8, 0.1, 2);
      Tensor alsoUnused =
          Updates.adamw(expected, state[0], state[1], state[2], 1e-2, 0.9, 0.95, 1e-8, 0.1, 2);
      AgainstCpu.close("a transposed parameter", expected, p, tolerance);
    }
  }

  @Test
  void theOptimizerUpdatesPlainParametersTogether() {
    List<Tensor> cpu = new ArrayList<>();
    List<Tensor> gpu = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      Tensor p = i % 2 == 0 ? normal(i, DType.FLOAT32, 3, 4 + i) : normal(i, DType.FLOAT32, 5);
      cpu.add(p.copy().requiresGrad(true));
      gpu.add(p.to(AgainstCpu.GPU).requiresGrad(true));
    }
    AdamW a = AdamW.over(cpu).learningRate(0.1).decayOnly(p -> p.ndim() > 1).build();
    AdamW b = AdamW.over(gpu).learningRate(0.1).decayOnly(p -> p.ndim() > 1).build();
    for (int step = 0; step < 3; step++) {
      for (int i = 0; i < 5; i++) {
        Tensor g = normal(10 * step + i, DType.FLOAT32, cpu.get(i).shape());
        cpu.get(i).setGrad(g);
        gpu.get(i).setGrad(g.to(AgainstCpu.GPU));
      }
      double norm = Clipping.clipGradNorm(cpu, 1);
      assertThat(Clipping.gradNorm(gpu)).isCloseTo(norm, within(1e-5 * norm));
      assertThat(Clipping.clipGradNorm(gpu, 1)).isCloseTo(norm, within(1e-5 * norm));
      a.step();
      b.step();
    }
    for (int i = 0; i < 5; i++) {
      AgainstCpu.close("parameter " + i, cpu.get(i).detach(), gpu.get(i).detach(), 1e-5);
    }
    a.close();
    b.close();
  }

  @Test
  void squaresAndClippingOfManyTensors() {
    List<Tensor> cpu = new ArrayList<>();
    List<Tensor> gpu = new ArrayList<>();
    for (int i = 0; i < 400; i++) {
      DType t = Samples.FLOATS[i / 100];
      Tensor x = normal(i, t, i % 9 == 0 ? 0 : i % 50 == 7 ? 70_001 : 1 + i);
      cpu.add(x.copy());
      gpu.add(x.to(AgainstCpu.GPU));
    }
    gpu.set(1, Views.t(Casts.copy(normal(1, DType.FLOAT32, 4, 3).to(AgainstCpu.GPU))));
    cpu.set(1, Views.t(normal(1, DType.FLOAT32, 4, 3)));
    double expected = Foreach.squares(cpu).item();
    Tensor square = Foreach.squares(gpu);
    assertThat(square.item()).isCloseTo(expected, within(1e-5 * expected));
    Foreach.clip(cpu, Tensor.of(new double[] {expected}, new long[0]), 3);
    Foreach.clip(gpu, square, 3);
    for (int i = 0; i < 400; i++) {
      // The factor is as exact as the norm, for float64, too.
      AgainstCpu.close(
          "clipped tensor " + i,
          cpu.get(i),
          gpu.get(i),
          Math.max(1e-5, Samples.tolerance(cpu.get(i).dtype())));
    }
  }
}
