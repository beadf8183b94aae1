package dev.weft.tensor.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HostMemoryTest {
  @Test
  void sizeClassesHoldWhatIsAskedAndWasteLittle() {
    for (long bytes = 1; bytes < 1L << 40; bytes = bytes * 3 / 2 + 1) {
      long size = HostMemory.classSize(HostMemory.sizeClass(bytes));
      assertThat(size).isGreaterThanOrEqualTo(bytes);
      assertThat(size).isLessThanOrEqualTo(Math.max(80, bytes * 5 / 4));
    }
  }

  @Test
  void blocksAreAlignedAndCountedExactly() {
    long before = LiveBytes.settled();
    long a = HostMemory.allocate(100);
    long b = HostMemory.allocate(0);
    assertThat(a % 64).isZero();
    assertThat(b % 64).isZero();
    assertThat(HostMemory.liveBytes()).isEqualTo(before + 100);
    HostMemory.free(a, 100);
    HostMemory.free(b, 0);
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  @Test
  void negativeSizesAreRefused() {
    assertThatThrownBy(() -> HostMemory.allocate(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1");
  }

  /** P56: the Java heap does not bound tensors; Weft's own limit does, and says what is held. */
  @Test
  void tensorsAreBoundedByTheirOwnLimitOnly() throws Exception {
    assertThat(child("-Xmx64m", List.of("1024"))).contains("allocated 1024 MiB");
    assertThat(child("-Dweft.memory.host.limit=104857600", List.of("1024")))
        .contains("cannot allocate")
        .contains("B live in")
        .contains("limit 104857600 B");
  }

  private static String child(String option, List<String> args)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add(option);
    command.add("-Dorg.bytedeco.javacpp.maxphysicalbytes=0");
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(Allocating.class.getName());
    command.addAll(args);
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    return text;
  }

  /** Allocates so many tensors of 1 MiB and keeps them. */
  static final class Allocating {
    public static void main(String[] args) {
      int count = Integer.parseInt(args[0]);
      List<Tensor> live = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        live.add(Tensors.empty(DType.UINT8, 1L << 20));
      }
      System.out.println("allocated " + live.size() + " MiB");
    }
  }

  /** P57: tensors of short-lived threads leave nothing behind. */
  @Test
  void shortThreadsLeaveNothing() throws Exception {
    shortThreads(200);
    long resident = residentBytes();
    long before = LiveBytes.settled();
    shortThreads(2000);
    assertThat(LiveBytes.settled()).isEqualTo(before);
    assertThat(residentBytes()).isLessThan(resident + (64L << 20));
  }

  private static void shortThreads(int count) throws InterruptedException {
    for (int i = 0; i < count; i++) {
      Thread thread =
          new Thread(
              () -> {
                try (TensorScope scope = TensorScope.open()) {
                  Tensor t = Tensors.empty(DType.FLOAT32, 1 << 16);
                  assertThat(t.numel()).isEqualTo(1 << 16);
                }
              });
      thread.start();
      thread.join();
    }
  }

  private static long residentBytes() throws IOException {
    String[] fields = Files.readString(Path.of("/proc/self/statm")).split(" ");
    return Long.parseLong(fields[1]) * 4096;
  }

  /** P58: a tensor handed to another thread through a queue has its values there. */
  @Test
  void handOversAreSeen() throws Exception {
    int rounds = 10_000;
    ArrayBlockingQueue<Tensor> queue = new ArrayBlockingQueue<>(4);
    Thread maker =
        new Thread(
            () -> {
              try {
                for (int i = 0; i < rounds; i++) {
                  queue.put(Tensor.of(new float[] {i, i + 1, i + 2}));
                }
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
    maker.start();
    for (int i = 0; i < rounds; i++) {
      Tensor t = queue.poll(20, TimeUnit.SECONDS);
      assertThat(t).isNotNull();
      assertThat(t.toFloatArray()).containsExactly(i, i + 1, i + 2);
      t.close();
    }
    maker.join();
  }

  @Test
  void whatNobodyReleasedIsFoundByTheCollector() throws Exception {
    long cleaned = HostMemory.stats().cleanedBlocks();
    for (int i = 0; i < 100; i++) {
      Tensor dropped = Tensors.empty(DType.UINT8, 1 << 10);
      assertThat(dropped.numel()).isEqualTo(1 << 10);
    }
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (HostMemory.stats().cleanedBlocks() < cleaned + 90 && System.nanoTime() < deadline) {
      System.gc();
      TimeUnit.MILLISECONDS.sleep(10);
    }
    assertThat(HostMemory.stats().cleanedBlocks()).isGreaterThanOrEqualTo(cleaned + 90);
  }
}
