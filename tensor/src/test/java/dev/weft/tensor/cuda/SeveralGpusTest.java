package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.weft.nn.Linear;
import dev.weft.optim.AdamW;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Norms;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is right on a device is right on the next one, which is not the thread's current one. */
@CudaTest
class SeveralGpusTest {
  private static final Device FIRST = Device.cuda(0);
  private static final Device SECOND = Device.cuda(1);

  private TensorScope scope;

  @BeforeEach
  void open() {
    assumeThat(Cuda.deviceCount()).as("GPUs").isGreaterThan(1);
    scope = TensorScope.open();
  }

  @AfterEach
  void close() {
    if (scope != null) {
      scope.close();
    }
  }

  private static Tensor normal(long seed, long... shape) {
    Random random = new Random(seed);
    float[] values = new float[(int) java.util.Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return Tensor.of(values, shape);
  }

  @Test
  void valuesGoFromOneToTheOther() {
    Tensor host = normal(1, 1000, 37);
    Tensor there = host.to(FIRST).mul(2).to(SECOND);
    assertThat(there.device()).isEqualTo(SECOND);
    assertThat(there.toFloatArray()).isEqualTo(host.mul(2).toFloatArray());
    Tensor back = there.add(1).transpose(0, 1).to(FIRST).contiguous();
    assertThat(back.toFloatArray())
        .isEqualTo(host.mul(2).add(1).transpose(0, 1).contiguous().toFloatArray());
  }

  @Test
  void copiesWaitForWhatTheSourceWasGiven() {
    for (int i = 0; i < 20; i++) {
      Tensor x = Tensor.of(new float[1 << 20], 1 << 20).to(FIRST);
      CudaSleep.nanos(0, 3_000_000);
      Tensor y = x.add(i).to(SECOND).add(1);
      float[] values = y.toFloatArray();
      assertThat(values[0]).isEqualTo(i + 1);
      assertThat(values[values.length - 1]).isEqualTo(i + 1);
    }
  }

  @Test
  void operatorsRefuseTensorsOfTwoDevices() {
    Tensor a = normal(1, 4).to(FIRST);
    Tensor b = normal(2, 4).to(SECOND);
    assertThatThrownBy(() -> a.add(b))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cuda:0")
        .hasMessageContaining("cuda:1");
  }

  private static List<float[]> train(Device device) {
    List<float[]> results = new ArrayList<>();
    Linear layer = new Linear(normal(1, 64, 64), null);
    layer.to(device);
    try (AdamW optimizer = AdamW.over(layer.parameters()).learningRate(1e-3).build()) {
      for (int step = 0; step < 3; step++) {
        try (TensorScope inner = TensorScope.open()) {
          Tensor x = normal(step, 2, 8, 64).to(device);
          Tensor y = layer.call(Norms.rmsNorm(x, new long[] {64}, normal(9, 64).to(device), 1e-5));
          Tensor heads = y.reshape(2, 8, 4, 16);
          Tensor mixed = Attention.scaledDotProduct(heads, heads, heads, true, 1);
          long[] targets = new long[16];
          Tensor loss =
              Losses.crossEntropy(mixed.reshape(16, 64), Tensor.of(targets, 16).to(device));
          loss.backward();
          optimizer.step();
          optimizer.zeroGrad();
          results.add(new float[] {(float) loss.item()});
        }
      }
      results.add(layer.parameters().iterator().next().detach().toFloatArray());
    }
    return results;
  }

  /** Bit by bit: both are of one kind. */
  @Test
  void trainingOnTheSecondIsAsOnTheFirst() {
    Cuda.setDevice(0);
    List<float[]> first = train(FIRST);
    List<float[]> second = train(SECOND);
    for (int i = 0; i < first.size(); i++) {
      assertThat(second.get(i)).isEqualTo(first.get(i));
    }
  }

  @Test
  void threadsTrainOnDevicesOfTheirOwn() throws InterruptedException {
    List<float[]> expected = train(FIRST);
    ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
    List<Thread> threads = new ArrayList<>();
    for (int d = 0; d < Cuda.deviceCount(); d++) {
      Device device = Device.cuda(d);
      Thread t =
          new Thread(
              () -> {
                Cuda.setDevice(device.index());
                for (int i = 0; i < 5; i++) {
                  List<float[]> got = train(device);
                  for (int k = 0; k < got.size(); k++) {
                    assertThat(got.get(k)).as("%s", device).isEqualTo(expected.get(k));
                  }
                }
              });
      t.setUncaughtExceptionHandler((thread, e) -> failures.add(e));
      threads.add(t);
      t.start();
    }
    for (Thread t : threads) {
      t.join();
    }
    assertThat(failures).isEmpty();
  }

  @Test
  void memoryIsCountedByDevice() {
    long before = CudaMemory.stats(1).allocatedBytes();
    Tensor t = normal(1, 1 << 20).to(SECOND);
    assertThat(CudaMemory.stats(1).allocatedBytes() - before).isGreaterThanOrEqualTo(4 << 20);
    t.close();
    assertThat(CudaMemory.stats(1).allocatedBytes()).isEqualTo(before);
  }
}
