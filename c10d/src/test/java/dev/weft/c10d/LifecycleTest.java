package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.Tensor;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Worlds begin, end and begin again; what they are made of is one string. */
@Timeout(60)
class LifecycleTest {
  @Test
  void aProcessCanJoinWorldAfterWorld() {
    for (int i = 0; i < 3; i++) {
      InitOptions options = InitOptions.DEFAULT.withStore(new HashStore(), 0, 1);
      try (World world = Distributed.init(options)) {
        Tensor t = Tensor.of(new float[] {i});
        world.group().allReduce(t, ReduceOp.SUM).await();
        assertThat(t.item()).isEqualTo(i);
        assertThatThrownBy(() -> Distributed.init(options))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("close that World first");
      }
      assertThat(Distributed.isInitialized()).isFalse();
      assertThatThrownBy(Distributed::rank)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("Distributed.init()");
    }
  }

  @Test
  void aDestroyedRankSaysSo() {
    LocalWorld.run(
        2,
        rank -> {
          assertThatThrownBy(Distributed::init)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("this thread is rank " + rank);
          Distributed.barrier().await();
          Distributed.destroy();
          Distributed.destroy();
          assertThat(Distributed.isInitialized()).isFalse();
          assertThatThrownBy(Distributed::worldSize)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("rank " + rank + " has left its world");
        });
  }

  @Test
  void backendStrings() {
    assertThat(BackendConfig.parse("gloo").byDeviceType()).isEqualTo(Map.of("cpu", "host"));
    assertThat(BackendConfig.parse("CPU:host, cuda:NCCL").toString())
        .isEqualTo("cpu:host,cuda:nccl");
    assertThat(BackendConfig.parse("nccl").byDeviceType()).isEqualTo(Map.of("cuda", "nccl"));
    for (String bad : new String[] {"cpu:", ":host", "host,cpu:host", "cpu:host;cuda:nccl"}) {
      assertThatThrownBy(() -> BackendConfig.parse(bad))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("malformed");
    }
    assertThatThrownBy(() -> BackendConfig.parse("cuda:host"))
        .hasMessageContaining("host does not serve device type 'cuda'");
    assertThatThrownBy(() -> BackendConfig.parse("cpu:host,cpu:fake"))
        .hasMessageContaining("names device type 'cpu' twice");
  }
}
