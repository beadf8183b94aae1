package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A backend that only its service file makes known. */
class ThirdPartyBackendTest {
  @ParameterizedTest
  @ValueSource(strings = {"counting", "Counted", "cpu:counting"})
  void isPickedByName(String backend) {
    ThirdPartyBackend.CALLS.clear();
    LocalWorld.of(2)
        .backend(backend)
        .run(
            rank -> {
              assertThat(Distributed.world().backendConfig()).isEqualTo("cpu:counting");
              Tensor t = Tensor.of(new float[] {rank + 1});
              Distributed.allReduce(t, ReduceOp.SUM).await();
              assertThat(t.item()).isEqualTo(3);
              // A group may have another one.
              ProcessGroup group =
                  Distributed.newGroup(
                      Distributed.world().ranks(), GroupOptions.DEFAULT.withBackend("host"));
              group.barrier().await();
            });
    assertThat(ThirdPartyBackend.CALLS.get("allReduce").get()).isEqualTo(2);
    assertThat(ThirdPartyBackend.CALLS).doesNotContainKey("barrier");
    assertThat(ThirdPartyBackend.CALLS.get("close").get()).isEqualTo(2);
  }

  @Test
  void isListedWithTheOthers() {
    assertThat(BackendRegistry.names()).contains("counting", "fake", "host", "mpi");
    assertThat(BackendRegistry.isAvailable("counted")).isTrue();
    assertThatThrownBy(() -> BackendRegistry.find("counter"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("backend 'counter' is unknown; expected one of")
        .hasMessageContaining("counting");
  }
}
