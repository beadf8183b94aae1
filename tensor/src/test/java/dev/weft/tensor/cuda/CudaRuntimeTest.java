package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.OutOfNativeMemoryError;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Streams, events, memory and copies of a real device. */
@CudaTest
class CudaRuntimeTest {
  private static final Device GPU = Device.cuda(0);
  private static final CudaKernel SPIN = KernelModule.of("spin.cu").kernel("spin");

  private TensorScope scope;

  @BeforeEach
  void open() {
    scope = TensorScope.open();
  }

  @AfterEach
  void close() {
    scope.close();
    Cuda.synchronize();
  }

  private static void spin(long microseconds) {
    Launch.on(0).int64(microseconds * 1000).run(SPIN, 1, 1);
  }

  private static StridedTensor filled(Number value, DType dtype, long... shape) {
    StridedTensor t = Tensors.empty(dtype, GPU, shape);
    CudaFills.fill(t, value);
    return t;
  }

  private static float[] ramp(int n) {
    float[] v = new float[n];
    for (int i = 0; i < n; i++) {
      v[i] = i * 0.5f;
    }
    return v;
  }

  @Test
  void describesTheDevice() {
    Cuda.Properties p = Cuda.properties(0);
    assertThat(p.name()).isNotBlank();
    assertThat(p.architecture()).matches("sm_\\d+");
    assertThat(p.multiprocessors()).isPositive();
    assertThat(Cuda.memoryInfo(0)[1]).isGreaterThan(1L << 30);
    assertThatThrownBy(() -> Cuda.setDevice(99)).hasMessageContaining("CUDA device 99");
  }

  @Test
  void valuesGoThereAndComeBack() {
    for (int n : new int[] {0, 1, 3, 1000, 100_003, 3_000_001}) {
      Tensor t = Tensor.of(ramp(n), n);
      assertThat(t.to(GPU).toFloatArray()).isEqualTo(ramp(n));
    }
  }

  @Test
  void viewsAreCopiedByStrides() {
    Tensor t = Tensor.of(ramp(60), 3, 4, 5);
    Tensor g = t.to(GPU);
    assertThat(g.permute(2, 0, 1).contiguous().toFloatArray())
        .isEqualTo(t.permute(2, 0, 1).contiguous().toFloatArray());
    assertThat(g.slice(1, 1, 3).toFloatArray()).isEqualTo(t.slice(1, 1, 3).toFloatArray());
    assertThat(g.transpose(1, 2).to(DType.FLOAT64).toDoubleArray())
        .isEqualTo(t.transpose(1, 2).to(DType.FLOAT64).toDoubleArray());
    assertThat(t.transpose(0, 2).to(GPU).toFloatArray())
        .isEqualTo(t.transpose(0, 2).toFloatArray());
  }

  @Test
  void largeTranspositionsAreRight() {
    Tensor t = Tensor.of(ramp(70 * 130 * 3), 3, 70, 130);
    Tensor g = t.to(GPU);
    assertThat(g.transpose(1, 2).contiguous().toFloatArray())
        .isEqualTo(t.transpose(1, 2).contiguous().toFloatArray());
  }

  @Test
  void castsAgreeWithTheCpu() {
    Tensor t = Tensor.of(new float[] {-2.5f, -0f, 0.3f, 1.9f, 300.7f, 65504, 1e-8f}, 7);
    for (DType to : DType.values()) {
      if (to == DType.UINT8 || to == DType.INT8 || to == DType.INT16) {
        continue; // out of range: undefined, as in PyTorch
      }
      assertThat(t.to(GPU).to(to).toDoubleArray()).as("%s", to).isEqualTo(t.to(to).toDoubleArray());
    }
  }

  @Test
  void fillsEveryDtype() {
    for (DType d : DType.values()) {
      StridedTensor t = filled(3, d, 1025);
      assertThat(t.toDoubleArray()).as("%s", d).containsOnly(d == DType.BOOL ? 1 : 3);
    }
  }

  @Test
  void workOfOneStreamIsInOrderAndOthersGoOn() {
    try (CudaStream other = CudaStream.create(0, false)) {
      CudaEvent behindSpin = new CudaEvent();
      spin(200_000);
      behindSpin.record(CudaStream.current());
      assertThat(behindSpin.isDone()).isFalse();
      other.synchronize();
      assertThat(other.isDone()).isTrue();
      assertThat(behindSpin.isDone()).as("the other stream did not wait").isFalse();
      other.waitFor(behindSpin);
      assertThat(other.isDone()).as("now it does").isFalse();
      behindSpin.synchronize();
      assertThat(behindSpin.isDone()).isTrue();
      behindSpin.close();
      other.synchronize();
    }
  }

  @Test
  void eventsTellTime() {
    try (CudaEvent start = new CudaEvent(0, true);
        CudaEvent end = new CudaEvent(0, true)) {
      start.record(CudaStream.current());
      spin(20_000);
      end.record(CudaStream.current());
      end.synchronize();
      assertThat(start.millisecondsTo(end)).isBetween(15f, 200f);
    }
  }

  @Test
  void hostCodeRunsInTheOrderOfTheStream() throws InterruptedException {
    CountDownLatch ran = new CountDownLatch(1);
    spin(50_000);
    CudaStream.current().onHost(ran::countDown);
    assertThat(ran.getCount()).as("not before the kernel").isEqualTo(1);
    assertThat(ran.await(10, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void freedMemoryGoesToTheNextOfTheSameStreamAtOnce() {
    StridedTensor a = Tensors.empty(DType.FLOAT32, GPU, 300_000);
    long address = a.dataAddress();
    a.close();
    assertThat(Tensors.empty(DType.FLOAT32, GPU, 300_000).dataAddress()).isEqualTo(address);
  }

  @Test
  @DisplayName("P36, P39: memory that another stream uses is not given away before that is done")
  void recordedMemoryIsKept() {
    try (CudaStream other = CudaStream.create(0, false)) {
      StridedTensor a = Tensors.empty(DType.FLOAT32, GPU, 777_777);
      long address = a.dataAddress();
      try (CudaStream.InUse use = other.use()) {
        spin(100_000);
      }
      ((CudaStorage) a.storage()).recordStream(other);
      a.close();
      assertThat(Tensors.empty(DType.FLOAT32, GPU, 777_777).dataAddress()).isNotEqualTo(address);
      other.synchronize();
      long[] later =
          IntStream.range(0, 3)
              .mapToLong(i -> Tensors.empty(DType.FLOAT32, GPU, 777_777).dataAddress())
              .toArray();
      assertThat(later).contains(address);
    }
  }

  @Test
  void blocksGrowTogetherAgain() {
    long before = CudaMemory.stats(0).reservedBytes();
    for (int round = 0; round < 50; round++) {
      try (TensorScope inner = TensorScope.open()) {
        for (int i = 1; i <= 40; i++) {
          StridedTensor unused = Tensors.empty(DType.UINT8, GPU, 1000L * i * (round % 7 + 1));
        }
      }
    }
    assertThat(CudaMemory.stats(0).reservedBytes() - before).isLessThanOrEqualTo(24L << 20);
  }

  @Test
  void statisticsCount() {
    CudaMemory.Stats before = CudaMemory.stats(0);
    StridedTensor t = Tensors.empty(DType.UINT8, GPU, 1 << 20);
    assertThat(CudaMemory.stats(0).allocatedBytes() - before.allocatedBytes()).isEqualTo(1 << 20);
    assertThat(CudaMemory.stats(0).blocks() - before.blocks()).isEqualTo(1);
    t.close();
    assertThat(CudaMemory.stats(0).allocatedBytes()).isEqualTo(before.allocatedBytes());
  }

  @Test
  void emptyCacheGivesSegmentsBack() {
    Tensors.empty(DType.UINT8, GPU, 512L << 20).close();
    assertThat(CudaMemory.stats(0).reservedBytes()).isGreaterThanOrEqualTo(512L << 20);
    long free = Cuda.memoryInfo(0)[0];
    CudaMemory.emptyCache(0);
    assertThat(Cuda.memoryInfo(0)[0]).isGreaterThanOrEqualTo(free + (512L << 20));
  }

  @Test
  void anImpossibleRequestSaysWhatIsHeld() {
    assertThatThrownBy(() -> Tensors.empty(DType.UINT8, GPU, 1L << 45))
        .isInstanceOf(OutOfNativeMemoryError.class)
        .hasMessageContaining("cuda:0")
        .hasMessageContaining("allocated in")
        .hasMessageContaining("driver reports");
    assertThat(filled(1, DType.FLOAT32, 4).toFloatArray()).as("the device goes on").containsOnly(1);
  }

  @Test
  void garbageIsCollectedBeforeGivingUp() {
    long total = Cuda.memoryInfo(0)[0] + CudaMemory.stats(0).reservedBytes();
    long piece = total / 4;
    // Three pieces at a time fit; nobody closes them.
    for (int i = 0; i < 9; i++) {
      StridedTensor garbage = TensorScope.outside(() -> Tensors.empty(DType.UINT8, GPU, piece));
      assertThat(garbage.numel()).isEqualTo(piece);
    }
    System.gc();
    CudaMemory.emptyCache(0);
  }

  @Test
  void pinnedMemoryIsRecognised() {
    StridedTensor pinned = PinnedMemory.empty(DType.FLOAT32, 1000);
    assertThat(PinnedMemory.isPinned(pinned)).isTrue();
    CudaCopies.copy(filled(2, DType.FLOAT32, 1000), pinned);
    assertThat(pinned.toFloatArray()).containsOnly(2);
    assertThat(pinned.to(GPU).toFloatArray()).containsOnly(2);
  }

  @Test
  void theCurrentStreamIsTheThreadsOwn() throws InterruptedException {
    CudaStream usual = CudaStream.current();
    CudaStream pooled = CudaStream.fromPool(0, true);
    assertThat(pooled.isHighPriority()).isTrue();
    try (CudaStream.InUse use = pooled.use()) {
      assertThat(CudaStream.current()).isSameAs(pooled);
      CudaStream[] seen = new CudaStream[1];
      Thread t = new Thread(() -> seen[0] = CudaStream.current());
      t.start();
      t.join();
      assertThat(seen[0]).isSameAs(usual);
    }
    assertThat(CudaStream.current()).isSameAs(usual);
  }

  @Test
  void gradientsFlowBetweenDevices() {
    Tensor x = Tensor.of(new float[] {1, 2, 3}, 3).requiresGrad(true);
    x.to(GPU).to(Device.CPU).sum().backward();
    assertThat(x.grad().toFloatArray()).containsExactly(1, 1, 1);
  }

  @Test
  void aFailedCallNamesItself() {
    assertThatThrownBy(
            () -> KernelModule.of("spin.cu", "spin=1nonsense").kernel("x").function(0, 0))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("spin.cu")
        .hasMessageContaining("does not compile");
  }
}
