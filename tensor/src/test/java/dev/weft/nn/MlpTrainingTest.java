package dev.weft.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.weft.optim.Clipping;
import dev.weft.optim.Sgd;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.LiveBytes;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import org.junit.jupiter.api.Test;

/** The reference run of the small classifier: 784-256-10, SGD with momentum, 30 steps. */
class MlpTrainingTest {
  private static final long SEED = 20240601;
  private static final int INPUTS = 784;
  private static final int HIDDEN = 256;
  private static final int CLASSES = 10;
  private static final int SAMPLES = 2048;
  private static final int BATCH = 64;

  private static Tensor weight(String name, int out, int in) {
    return Tensor.of(SpecStream.of(SEED, name).symmetric(out * in, 1 / Math.sqrt(in)), out, in);
  }

  private static Sequential model() {
    return new Sequential(
        new Linear(weight("fc1.weight", HIDDEN, INPUTS), Tensor.of(new float[HIDDEN], HIDDEN)),
        new Function(Activations::relu),
        new Linear(weight("fc2.weight", CLASSES, HIDDEN), Tensor.of(new float[CLASSES], CLASSES)));
  }

  private static Tensor[] batch(int step) {
    SpecStream order = SpecStream.of(SEED, "data.batch");
    SpecStream labels = SpecStream.of(SEED, "data.label");
    SpecStream prototypes = SpecStream.of(SEED, "data.proto");
    SpecStream noise = SpecStream.of(SEED, "data.noise");
    float[] x = new float[BATCH * INPUTS];
    long[] y = new long[BATCH];
    for (int r = 0; r < BATCH; r++) {
      long sample = order.below((long) step * BATCH + r, SAMPLES);
      y[r] = labels.below(sample, CLASSES);
      for (int j = 0; j < INPUTS; j++) {
        x[r * INPUTS + j] =
            0.125f * prototypes.sym(y[r] * INPUTS + j) + noise.sym(sample * INPUTS + j);
      }
    }
    return new Tensor[] {Tensor.of(x, BATCH, INPUTS), Tensor.of(y, BATCH)};
  }

  @Test
  void lossesAndGradientNormsAgreeWithTheReferenceRunAndNoMemoryIsLeft() {
    Sequential model = model();
    Sgd sgd = Sgd.over(model.parameters()).learningRate(0.05).momentum(0.9).build();
    double[] losses = new double[30];
    double[] norms = new double[30];
    long live = 0;
    for (int step = 0; step < losses.length; step++) {
      try (TensorScope scope = TensorScope.open()) {
        Tensor[] b = batch(step);
        Tensor loss = Losses.crossEntropy(model.call(b[0]), b[1]);
        loss.backward();
        losses[step] = loss.item();
        norms[step] = Clipping.gradNorm(model.parameters());
        sgd.step();
        sgd.zeroGrad();
        assertThat(scope.size()).isPositive();
      }
      if (step == 0) {
        live = LiveBytes.settled();
      }
      assertThat(HostMemory.liveBytes()).as("after step %s", step).isEqualTo(live);
    }
    expect(losses[0], 2.297325372695923);
    expect(losses[1], 2.3124759197235107);
    expect(losses[2], 2.2926392555236816);
    expect(losses[9], 2.203982353210449);
    expect(losses[29], 1.5653139352798462);
    expect(norms[0], 0.9527661144209554);
    expect(norms[1], 0.9154358144270971);
    expect(norms[29], 1.2713732262172035);
  }

  private static void expect(double actual, double reference) {
    assertThat(actual).isCloseTo(reference, within(5e-6 * reference));
  }
}
