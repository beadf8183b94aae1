package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.nd4j.linalg.api.buffer.DataType;
import org.nd4j.linalg.api.ndarray.INDArray;
import org.nd4j.linalg.factory.Nd4j;
import org.nd4j.linalg.indexing.NDArrayIndex;

/** ND4J arrays go into collectives as they are and get the result (P28, P59). */
@Timeout(120)
class NdArrayTest {
  @Test
  void anyOrderOrViewIsReducedInPlace() {
    LocalWorld.run(
        2,
        rank -> {
          INDArray base = Nd4j.arange(24).castTo(DataType.FLOAT).reshape('c', 4, 6);
          INDArray[] arrays = {
            base.dup(),
            base.dup('f'),
            base.dup().transpose(),
            base.dup().getColumn(3),
            base.dup().getRow(2),
            base.dup().get(NDArrayIndex.interval(1, 3), NDArrayIndex.interval(2, 5)),
            base.dup().get(NDArrayIndex.all(), NDArrayIndex.interval(0, 2, 6)),
            Nd4j.scalar(7f),
            Nd4j.create(new double[] {1, 2, 3}),
            Nd4j.createFromArray(1L, 1L << 60, -5L),
            Nd4j.createFromArray((byte) 1, (byte) -3),
          };
          for (INDArray array : arrays) {
            INDArray expected = array.dup('c');
            expected = expected.add(expected);
            Work unused = Distributed.allReduce(array, ReduceOp.SUM);
            assertThat(array.dup('c').toStringFull()).isEqualTo(expected.toStringFull());
          }
          // A view's neighbours are left alone.
          INDArray whole = base.dup();
          Work unused = Distributed.allReduce(whole.getColumn(1), ReduceOp.SUM);
          assertThat(whole.getFloat(1, 1)).isEqualTo(14);
          assertThat(whole.getFloat(1, 0)).isEqualTo(6);
          assertThat(whole.getFloat(1, 2)).isEqualTo(8);
        });
  }

  @Test
  void theOtherCollectivesTakeArraysToo() {
    LocalWorld.run(
        2,
        rank -> {
          INDArray mine = Nd4j.create(new float[] {rank, 10 + rank});
          INDArray all = Nd4j.create(DataType.FLOAT, 2, 2);
          Work unused = Distributed.allGatherIntoTensor(all, mine, null, CollectiveOptions.SYNC);
          assertThat(all.data().asFloat()).containsExactly(0, 10, 1, 11);
          INDArray a = Nd4j.create(DataType.FLOAT, 2);
          INDArray b = Nd4j.create(DataType.FLOAT, 2);
          unused = Distributed.allGather(List.of(a, b), mine, null, CollectiveOptions.SYNC);
          assertThat(b.data().asFloat()).containsExactly(1, 11);
          unused = Distributed.broadcast(mine, 1);
          assertThat(mine.data().asFloat()).containsExactly(1, 11);
          INDArray part = Nd4j.create(DataType.FLOAT, 1, 2);
          unused =
              Distributed.reduceScatterTensor(
                  part, all, ReduceOp.SUM, null, CollectiveOptions.SYNC);
          assertThat(part.getFloat(0, 0)).isEqualTo(rank * 2);
          Work async = Distributed.allReduce(mine, ReduceOp.SUM, null, CollectiveOptions.ASYNC);
          async.await();
          assertThat(mine.data().asFloat()).containsExactly(2, 22);
        });
  }
}
