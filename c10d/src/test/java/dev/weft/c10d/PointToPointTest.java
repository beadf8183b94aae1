package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.tensor.Tensor;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sends and receives on the host backend, in one memory and over TCP. */
class PointToPointTest {
  @Nested
  class InOneMemory extends PointToPointSpec {
    InOneMemory() {
      super(OnRanks.by(Way.THREADS));
    }
  }

  @Nested
  class OverTcp extends PointToPointSpec {
    OverTcp() {
      super(OnRanks.by(Way.TCP));
    }
  }

  @Nested
  class OverSharedMemory extends PointToPointSpec {
    OverSharedMemory() {
      super(OnRanks.by(Way.SHM));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aPeerThatFailsEndsThem(Way way) {
    OnRanks ranks = OnRanks.by(way);
    Throwable first =
        catchThrowable(
            () ->
                ranks.run(
                    3,
                    (rank, world) -> {
                      if (rank == 2) {
                        throw new IllegalStateException("boom");
                      }
                      Tensor t = Tensor.of(new float[1]);
                      Throwable failure =
                          catchThrowable(
                              () -> {
                                Work unused =
                                    rank == 0
                                        ? Distributed.recv(t, 1, 0)
                                        : Distributed.send(t, 2, 0);
                              });
                      assertThat(failure)
                          .isInstanceOf(PeerFailedException.class)
                          .hasMessageContaining("rank 2 failed")
                          .hasMessageContaining("boom");
                    }));
    assertThat(first).hasMessage("boom");
  }

  @ParameterizedTest
  @ValueSource(ints = {-2, 0, 2})
  void badPeersAreRefused(int peer) {
    LocalWorld.run(
        2,
        rank -> {
          if (rank == 0) {
            Tensor t = Tensor.of(new float[1]);
            assertThatThrownBy(() -> Distributed.world().send(t, peer, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("destination is")
                .hasMessageContaining("rank " + peer);
            assertThatThrownBy(() -> Distributed.world().recv(t, 1, -1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("tag is -1");
          }
        });
  }
}
