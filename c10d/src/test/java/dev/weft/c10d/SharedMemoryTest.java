package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is particular to shared memory: how it comes and goes, and calls of many chunks. */
@Timeout(120)
class SharedMemoryTest {
  @TempDir Path folder;

  private LocalWorld world(int size) {
    return LocalWorld.of(size)
        .overSharedMemory()
        .variable("WEFT_SHM_DIR", folder.toString())
        .timeout(Duration.ofSeconds(30));
  }

  private static List<Path> mapped(Path folder) throws IOException {
    Path maps = Path.of("/proc/self/maps");
    if (!Files.isReadable(maps)) {
      return List.of();
    }
    try (Stream<String> lines = Files.lines(maps)) {
      return lines.filter(l -> l.contains(folder.toString())).map(Path::of).toList();
    }
  }

  /** P57: the file has no name once all have mapped it, and no memory once the group is gone. */
  @Test
  void nothingIsLeftOfTheFile() throws IOException {
    world(3)
        .run(
            rank -> {
              ProcessGroup group = Distributed.newGroup(0, 1, 2);
              Tensor t = Tensor.of(new float[] {rank});
              Work unused = group.allReduce(t, ReduceOp.SUM);
              assertThat(t.item()).isEqualTo(3);
              unused = Distributed.barrier();
              try (Stream<Path> files = Files.list(folder)) {
                assertThat(files).isEmpty();
              }
              group.destroy();
            });
    assertThat(mapped(folder)).isEmpty();
  }

  @Test
  void withoutItsFolderItIsAnErrorWhereItIsAskedFor() {
    assertThatThrownBy(
            () ->
                world(2)
                    .variable("WEFT_SHM_DIR", folder.resolve("none").toString())
                    .run(rank -> Distributed.barrier()))
        .isInstanceOf(DistributedException.class)
        .hasMessageContaining("group 'world' of ranks [0, 1] cannot use shared memory")
        .hasMessageContaining("WEFT_HOST_TRANSPORT=shm asks for: rank 0 cannot make")
        .hasMessageContaining("NoSuchFileException");
  }

  @Test
  void withoutItsFolderRanksUseTcpWhereItIsNot() {
    world(3)
        .variable("WEFT_HOST_TRANSPORT", "auto")
        .variable("WEFT_SHM_DIR", folder.resolve("none").toString())
        .run(
            rank -> {
              Tensor t = Tensor.of(new float[50_000]).add(rank);
              Work unused = Distributed.allReduce(t, ReduceOp.SUM);
              assertThat(t.toFloatArray()).containsOnly(3);
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"sockets", "tcp,shm"})
  void unknownTransportsAreNamed(String transport) {
    assertThatThrownBy(
            () ->
                world(2)
                    .variable("WEFT_HOST_TRANSPORT", transport)
                    .run(rank -> Distributed.barrier()))
        .hasMessageContaining("WEFT_HOST_TRANSPORT is '" + transport + "'; expected auto, tcp or");
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1", "many", "999999999"})
  void badSizesAreNamed(String bytes) {
    assertThatThrownBy(
            () -> world(2).variable("WEFT_SHM_CHUNK", bytes).run(rank -> Distributed.barrier()))
        .hasMessageContaining("WEFT_SHM_CHUNK is ")
        .hasMessageContaining("expected");
  }

  /** Sizes around those of chunks and of what goes along with calls; the bits of all are equal. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void manyChunks(int size) {
    List<int[]> bits = new ArrayList<>();
    world(size)
        .variable("WEFT_SHM_CHUNK", "8192")
        .variable("WEFT_SHM_INLINE", "4096")
        .run(
            rank -> {
              for (int n : new int[] {1, 1023, 1024, 1025, 2048, 2049, 10_239, 10_240, 100_003}) {
                try (TensorScope scope = TensorScope.open()) {
                  int[] mine = sum(rank, n);
                  synchronized (bits) {
                    bits.add(mine);
                  }
                  Work unused = Distributed.barrier();
                  assertThat(bits).hasSize(size).allMatch(b -> java.util.Arrays.equals(b, mine));
                  unused = Distributed.barrier();
                  synchronized (bits) {
                    bits.clear();
                  }
                  unused = Distributed.barrier();
                }
              }
            });
  }

  private static int[] sum(int rank, int n) {
    float[] expected = new float[n];
    float[] own = new float[n];
    for (int r = 0; r < Distributed.worldSize(); r++) {
      Random random = new Random(r);
      for (int i = 0; i < n; i++) {
        float value = (float) random.nextGaussian();
        expected[i] = r == 0 ? value : expected[i] + value;
        own[i] = r == rank ? value : own[i];
      }
    }
    Tensor t = Tensor.of(own);
    Work unused = Distributed.allReduce(t, ReduceOp.SUM);
    float[] got = t.toFloatArray();
    assertThat(got).containsExactly(expected);
    int[] out = new int[n];
    for (int i = 0; i < n; i++) {
      out[i] = Float.floatToRawIntBits(got[i]);
    }
    return out;
  }

  /** Ranks that send some much, some little, some nothing. */
  @Test
  void unevenExchanges() {
    int size = 4;
    world(size)
        .variable("WEFT_SHM_CHUNK", "8192")
        .variable("WEFT_SHM_INLINE", "4096")
        .run(
            rank -> {
              for (long unit : new long[] {1, 300, 3_000, 20_000}) {
                try (TensorScope scope = TensorScope.open()) {
                  List<StridedTensor> in = new ArrayList<>();
                  List<StridedTensor> out = new ArrayList<>();
                  List<StridedTensor> gathered = new ArrayList<>();
                  for (int p = 0; p < size; p++) {
                    in.add(Values.tensor(10 * rank + p, DType.INT32, unit * (rank * p % 3)));
                    out.add(Tensors.empty(DType.INT32, unit * (rank * p % 3)));
                    gathered.add(Tensors.empty(DType.INT32, unit * p));
                  }
                  Work unused = Distributed.world().allToAll(out, in);
                  StridedTensor own = Values.tensor(rank, DType.INT32, unit * rank);
                  unused = Distributed.world().allGather(gathered, own);
                  for (int p = 0; p < size; p++) {
                    assertThat(Values.all(out.get(p)))
                        .isEqualTo(
                            Values.all(
                                Values.tensor(10 * p + rank, DType.INT32, unit * (rank * p % 3))));
                    assertThat(Values.all(gathered.get(p)))
                        .isEqualTo(Values.all(Values.tensor(p, DType.INT32, unit * p)));
                  }
                }
              }
            });
  }

  /** P36: messages keep their order on the way from TCP to a ring, which they fill many times. */
  @Test
  void messagesThroughARing() {
    int[] sizes = {1, 5_000, 0, 40_000, 3, 4_096, 1_000};
    world(3)
        .variable("WEFT_SHM_RING", "16384")
        .run(
            rank -> {
              for (int turn = 0; turn < 20; turn++) {
                try (TensorScope scope = TensorScope.open()) {
                  List<Work> works = new ArrayList<>();
                  List<Tensor> received = new ArrayList<>();
                  for (int i = 0; i < sizes.length; i++) {
                    Tensor sent = Tensor.of(new float[sizes[i]]).add(100f * turn + 10 * i + rank);
                    works.add(
                        Distributed.world().send(sent, (rank + 1) % 3, 4, CollectiveOptions.ASYNC));
                  }
                  for (int size : sizes) {
                    Tensor t = Tensor.of(new float[size]);
                    received.add(t);
                    works.add(
                        Distributed.world()
                            .recv(
                                t,
                                turn % 2 == 0 ? ProcessGroup.ANY_SOURCE : (rank + 2) % 3,
                                4,
                                CollectiveOptions.ASYNC));
                  }
                  works.forEach(Work::await);
                  for (int i = 0; i < sizes.length; i++) {
                    float[] got = received.get(i).toFloatArray();
                    float expected = 100f * turn + 10 * i + (rank + 2) % 3;
                    assertThat(got).hasSize(sizes[i]);
                    for (float f : got) {
                      assertThat(f).isEqualTo(expected);
                    }
                  }
                }
              }
              try (Stream<Path> files = Files.list(folder)) {
                assertThat(files).isEmpty();
              }
            });
  }

  /** Its maker was killed between making a file and removing its name. */
  @Test
  void staleFilesAreRemoved() throws IOException {
    Path old = Files.createFile(folder.resolve("weft-" + "0a".repeat(16)));
    Path young = Files.createFile(folder.resolve("weft-" + "0b".repeat(16)));
    Path other = Files.createFile(folder.resolve("weft-notes"));
    FileTime before = FileTime.from(Instant.now().minus(Duration.ofHours(2)));
    for (int i = 10; i < 40; i++) { // what cannot be removed does not keep the rest
      Path full = Files.createDirectory(folder.resolve("weft-" + String.valueOf(i).repeat(16)));
      Path unused = Files.createFile(full.resolve("file"));
      Files.setLastModifiedTime(full, before);
    }
    Files.setLastModifiedTime(old, before);
    Files.setLastModifiedTime(other, before);
    world(2)
        .run(
            rank -> {
              Work unused = Distributed.barrier();
            });
    assertThat(old).doesNotExist();
    assertThat(young).exists();
    assertThat(other).exists();
  }

  @Test
  void differentTransportsAreAnErrorOnAllRanks() throws Exception {
    HashStore store = new HashStore();
    String[] transports = {"tcp", "auto", "tcp"};
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int r = 0; r < transports.length; r++) {
      RankContext rank =
          ProcessRanks.rank(r, transports.length, store, Duration.ofSeconds(30), transports[r]);
      threads.add(
          new Thread(
              () -> {
                Throwable failure = catchThrowable(() -> ProcessRanks.connect(rank));
                synchronized (failures) {
                  failures.add(failure);
                }
              }));
    }
    threads.forEach(Thread::start);
    for (Thread t : threads) {
      t.join();
    }
    assertThat(failures)
        .hasSize(3)
        .allSatisfy(
            f ->
                assertThat(f)
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageContaining("WEFT_HOST_TRANSPORT is ")
                    .hasMessageContaining("auto on rank 1")
                    .hasMessageContaining("tcp on rank "));
  }
}
