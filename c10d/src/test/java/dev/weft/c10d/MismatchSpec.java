package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensors;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** P29: what does not fit between ranks is one error on all of them, before data moves. */
@Timeout(60)
abstract class MismatchSpec {
  private final OnRanks ranks;

  MismatchSpec(OnRanks ranks) {
    this.ranks = ranks;
  }

  interface Call {
    Work on(ProcessGroup group, int rank);
  }

  static Stream<Arguments> mismatches() {
    return Stream.of(
        mismatch(
            "shape",
            (g, r) -> g.allReduce(Tensors.empty(DType.FLOAT32, shape(r)), ReduceOp.SUM),
            "ranks [0, 2] call all_reduce(sum) of float32[3, 4]",
            "rank 1 calls all_reduce(sum) of float32[]",
            "differ in shape"),
        mismatch(
            "large shape",
            (g, r) -> g.broadcast(Tensors.empty(DType.INT8, r == 1 ? 90_000 : 80_000), 0),
            "int8[80000]",
            "int8[90000]",
            "differ in shape"),
        mismatch(
            "dtype",
            (g, r) -> g.broadcast(Tensors.empty(r == 1 ? DType.INT32 : DType.FLOAT32, 4), 0),
            "of float32[4]",
            "of int32[4]",
            "differ in dtype"),
        mismatch(
            "reduce op",
            (g, r) ->
                g.allReduce(Tensors.empty(DType.FLOAT32, 4), r == 1 ? ReduceOp.MAX : ReduceOp.SUM),
            "all_reduce(sum)",
            "all_reduce(max)",
            "differ in reduce op"),
        mismatch(
            "root",
            (g, r) -> g.broadcast(Tensors.empty(DType.FLOAT32, 4), r == 1 ? 2 : 0),
            "broadcast(root=0)",
            "broadcast(root=2)",
            "differ in root"),
        mismatch(
            "order",
            (g, r) ->
                r == 1 ? g.barrier() : g.allReduce(Tensors.empty(DType.FLOAT32, 4), ReduceOp.SUM),
            "rank 1 calls barrier",
            "differ in operation"),
        mismatch(
            "splits",
            (g, r) ->
                g.allToAllSingle(
                    Tensors.empty(DType.FLOAT32, 6, 2),
                    Tensors.empty(DType.FLOAT32, 6, 2),
                    new long[] {2, 2, 2},
                    r == 1 ? new long[] {1, 3, 2} : new long[] {2, 2, 2}),
            "rank 1 sends 2 elements of float32 to rank 0, which expects 4"),
        mismatch(
            "gathered sizes",
            (g, r) ->
                g.allGatherIntoTensor(
                    Tensors.empty(DType.FLOAT64, r == 1 ? 9 : 6),
                    Tensors.empty(DType.FLOAT64, r == 1 ? 3 : 2)),
            "rank 0 sends 2 elements of float64 to rank 1, which expects 3"));
  }

  private static long[] shape(int rank) {
    return rank == 1 ? new long[0] : new long[] {3, 4};
  }

  private static Arguments mismatch(String name, Call call, String... parts) {
    return Arguments.of(Named.of(name, call), List.of(parts));
  }

  @ParameterizedTest
  @MethodSource("mismatches")
  void isTheSameErrorEverywhere(Call call, List<String> parts) {
    ranks.run(
        3,
        (rank, world) -> {
          ProcessGroup group = Distributed.newGroup(0, 1, 2);
          Throwable failure = catchThrowable(() -> call.on(group, rank));
          assertThat(failure).isInstanceOf(MismatchException.class);
          assertThat(failure.getMessage())
              .contains(parts)
              .contains("collective 1")
              .contains("[0, 1, 2]");
          // The group is unusable and says so; others are not affected.
          Throwable later = catchThrowable(group::barrier);
          assertThat(later)
              .isInstanceOf(DistributedException.class)
              .hasMessageContaining("unusable")
              .hasMessageContaining(failure.getMessage())
              .hasCause(failure);
          List<String> messages =
              ObjectCollectives.allGatherObject(failure.getMessage(), String.class, world);
          assertThat(messages).containsOnly(failure.getMessage());
          group.destroy();
        });
  }
}
