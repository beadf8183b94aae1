package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.HostMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Groups come and go, and leave nothing behind. */
@Timeout(120)
class GroupLeakTest {
  private static final int GROUPS = 200;

  /**
   * What a process holds.
   *
   * @param threads Java threads
   * @param files open files and sockets
   * @param bytes native memory
   */
  private record Held(int threads, long files, long bytes) {
    static Held now() throws IOException {
      Path open = Path.of("/proc/self/fd");
      long files = 0;
      if (Files.isDirectory(open)) {
        try (Stream<Path> all = Files.list(open)) {
          files = all.count();
        }
      }
      return new Held(Thread.getAllStackTraces().size(), files, HostMemory.liveBytes());
    }
  }

  @ParameterizedTest
  @EnumSource
  void twoHundredGroupsLeaveNothing(Way way) throws IOException {
    AtomicReference<Held> before = new AtomicReference<>();
    AtomicReference<Held> after = new AtomicReference<>();
    LocalWorld world = LocalWorld.of(3);
    way.of(world)
        .run(
            rank -> {
              use(10); // what is made once is there afterwards
              if (rank == 0) {
                before.set(Held.now());
              }
              Distributed.barrier().await();
              use(GROUPS);
              Distributed.barrier().await();
              if (rank == 0) {
                after.set(Held.now());
              }
              Distributed.barrier().await();
              assertThat(RankContext.current().groups().liveCount()).isEqualTo(1);
            });
    // Two ranks and their pool may have a thread more under way; groups would have hundreds.
    assertThat(after.get().threads()).isLessThanOrEqualTo(before.get().threads() + 8);
    assertThat(after.get().files()).isLessThanOrEqualTo(before.get().files() + 8);
    assertThat(after.get().bytes()).isLessThanOrEqualTo(before.get().bytes() + 4096);
  }

  /** Makes groups, uses all that a group can have, and destroys them. */
  private static void use(int groups) {
    for (int i = 0; i < groups; i++) {
      try (TensorScope scope = TensorScope.open()) {
        ProcessGroup group = Distributed.newGroup(0, 1, 2);
        Tensor t = Tensor.of(new float[3000]);
        Work reducing = group.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
        int next = (group.rank() + 1) % 3;
        int last = (group.rank() + 2) % 3;
        Work sending = group.isend(Tensor.of(new long[] {i}), next, 0);
        Tensor got = Tensor.of(new long[1]);
        group.recv(got, last, 0).await();
        sending.await();
        reducing.await();
        assertThat(got.toLongArray()[0]).isEqualTo(i);
        group.destroy();
      }
    }
  }
}
