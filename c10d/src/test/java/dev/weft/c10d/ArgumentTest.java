package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Bad arguments are refused on the calling rank, by name, before anything is sent. */
class ArgumentTest {
  private static Tensor floats(long... shape) {
    return Tensors.empty(DType.FLOAT32, shape);
  }

  private static Tensor ints(long... shape) {
    return Tensors.empty(DType.INT32, shape);
  }

  static Stream<Arguments> calls() {
    return Stream.of(
        call(g -> g.allReduce(ints(2), ReduceOp.AVG), "avg", "int32"),
        call(g -> g.allReduce(floats(2), ReduceOp.BAND), "band", "float32"),
        call(g -> g.allReduce(ints(2), ReduceOp.premulSum(2)), "premul_sum(2.0)", "int32"),
        call(g -> g.allGather(List.of(floats(2)), floats(2)), "outputs has 1", "2 ranks"),
        call(g -> g.allGather(List.of(ints(2), floats(2)), floats(2)), "outputs[0]", "int32"),
        call(g -> g.allGatherIntoTensor(floats(3), floats(2)), "output", "3 elements", "4"),
        call(g -> g.allGatherIntoTensor(ints(4), floats(2)), "output", "int32", "float32"),
        call(g -> g.reduceScatter(floats(1), List.of(floats(1)), ReduceOp.SUM), "inputs has 1"),
        call(g -> g.reduceScatterTensor(floats(2), floats(3), ReduceOp.SUM), "input", "4"),
        call(g -> g.allToAll(List.of(floats(1)), List.of(floats(1))), "outputs has 1"),
        call(g -> g.allToAllSingle(floats(3), floats(3), null, null), "3 rows", "2 ranks"),
        call(g -> g.allToAllSingle(floats(), floats(), null, null), "no dimension"),
        call(
            g -> g.allToAllSingle(floats(4), floats(4), null, new long[] {1, 2}),
            "inputSplits",
            "[1, 2]",
            "4"),
        call(
            g -> g.allToAllSingle(floats(4), floats(4), new long[] {4}, null),
            "outputSplits",
            "[4]"),
        call(g -> g.broadcast(floats(1), 2), "root", "group rank 2", "0 to 1"),
        call(g -> g.reduce(floats(1), -1, ReduceOp.SUM), "root", "group rank -1"),
        call(g -> g.gather(floats(1), null, 0), "outputs is null"),
        call(g -> g.gather(floats(1), List.of(floats(1), floats(1)), 1), "outputs is given"),
        call(g -> g.scatter(floats(1), null, 0), "inputs is null"),
        call(g -> g.scatter(floats(1), List.of(floats(1)), 0), "inputs has 1"));
  }

  interface Call {
    Work on(ProcessGroup group);
  }

  private static Arguments call(Call call, String... parts) {
    return Arguments.of(Named.of(String.join(" ", parts), call), parts);
  }

  @ParameterizedTest
  @MethodSource("calls")
  void badArguments(Call call, String[] parts) {
    LocalWorld.run(
        2,
        rank -> {
          if (rank == 0) {
            assertThatThrownBy(() -> call.on(Distributed.world()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(parts);
          }
          // Nothing was started, so the ranks are still in step.
          Work unused = Distributed.barrier();
        });
  }

  @Test
  void metaTensorsMoveNothing() {
    LocalWorld.run(
        2,
        rank -> {
          if (rank == 0) {
            Tensor t = Tensors.empty(DType.FLOAT32, Device.META, 1L << 40);
            Work done = Distributed.allReduce(t, ReduceOp.SUM);
            assertThat(done.isSuccess()).isTrue();
          }
        });
  }

  @Test
  void reduceOpsByName() {
    assertThat(ReduceOp.of("SUM")).isEqualTo(ReduceOp.SUM);
    assertThat(ReduceOp.of("bXor")).isEqualTo(ReduceOp.BXOR);
    assertThat(ReduceOp.premulSum(2)).isEqualTo(ReduceOp.premulSum(2));
    assertThatThrownBy(() -> ReduceOp.of("mean"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'mean'")
        .hasMessageContaining("avg");
  }

  @Test
  void aWorldOfOneNeedsNoEnvironmentAndCanBeMadeAgain() {
    assertThatThrownBy(Distributed::rank).hasMessageContaining("Distributed.init()");
    for (int i = 0; i < 2; i++) {
      try (World world = Distributed.init()) {
        assertThat(Distributed.rank()).isZero();
        assertThat(world.size()).isEqualTo(1);
        Tensor t = Tensor.of(new float[] {2});
        Work unused = Distributed.allReduce(t, ReduceOp.premulSum(3));
        assertThat(t.item()).isEqualTo(6);
        unused = Distributed.barrier();
        assertThatThrownBy(Distributed::init)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("a world already");
        Distributed.destroy();
        Distributed.destroy();
        assertThat(Distributed.isInitialized()).isFalse();
        world.close();
      }
    }
  }

  @Test
  void badWorldsAreRefused() {
    try (HashStore store = new HashStore()) {
      InitOptions options = InitOptions.DEFAULT;
      assertThatThrownBy(() -> Distributed.init(options.withStore(store, -1, 2)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("rank is -1");
      assertThatThrownBy(() -> Distributed.init(options.withStore(store, 0, 0)))
          .hasMessageContaining("worldSize 0");
      assertThatThrownBy(
              () ->
                  Distributed.init(
                      options.withStore(store, 0, 1).withInitMethod("tcp://localhost:1")))
          .hasMessageContaining("a store is given");
      assertThatThrownBy(() -> Distributed.init(options.withStore(store, 0, 1).withBackend("nope")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("backend 'nope' is unknown");
      assertThat(Distributed.isInitialized()).isFalse();
    }
  }
}
