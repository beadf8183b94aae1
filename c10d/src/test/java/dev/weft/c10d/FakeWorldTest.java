package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.List;
import org.junit.jupiter.api.Test;

class FakeWorldTest {
  @Test
  void oneRankOfAWorldOfAnySizeRunsAlone() {
    FakeWorld.run(
        1000,
        4096,
        rank -> {
          assertThat(Distributed.rank()).isEqualTo(1000);
          assertThat(Distributed.worldSize()).isEqualTo(4096);
          Tensor t = Tensor.of(new float[] {1, 2});
          Work done = Distributed.allReduce(t, ReduceOp.SUM);
          assertThat(done.isSuccess()).isTrue();
          StridedTensor all = Tensors.empty(DType.FLOAT32, 4096, 2);
          done = Distributed.allGatherIntoTensor(all, t, null, CollectiveOptions.ASYNC);
          assertThat(done.isCompleted()).isTrue();
          assertThat(Values.get(all, 8191)).isEqualTo(2);
          // The result may have another shape than the parts one after the other.
          StridedTensor flat = Tensors.empty(DType.FLOAT32, 8192);
          Tensor row = Tensor.of(new float[] {3, 4}, 1, 2);
          done = Distributed.allGatherIntoTensor(flat, row, null, CollectiveOptions.ASYNC);
          assertThat(Values.get(flat, 8191)).isEqualTo(4);
          ProcessGroup pair = Distributed.newGroup(7, 1000);
          assertThat(pair.rank()).isEqualTo(1);
          StridedTensor part = Tensors.empty(DType.FLOAT32, 1);
          done = pair.reduceScatterTensor(part, t, ReduceOp.SUM);
          assertThat(Values.get(part, 0)).isEqualTo(2);
          done = pair.barrier();
          done = pair.scatter(part, null, 0);
          done = pair.allGather(List.of(part, part), part);
          assertThat(done.opName()).isEqualTo("all_gather");
        });
    assertThat(Distributed.isInitialized()).isFalse();
  }

  @Test
  void theFakeBackendServesThreadsToo() {
    List<Integer> ranks =
        LocalWorld.of(4)
            .backend("fake")
            .call(
                rank -> {
                  Work unused = Distributed.barrier();
                  return Distributed.rank();
                });
    assertThat(ranks).containsExactly(0, 1, 2, 3);
  }
}
