package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Every dtype, reduction, size and layout against plain Java, on data that differs everywhere. */
@Timeout(120)
abstract class CollectiveSpec {
  private final OnRanks ranks;

  CollectiveSpec(OnRanks ranks) {
    this.ranks = ranks;
  }

  private static final int RANKS = 3;

  /** Small goes along with the opening, large in parts that do not divide evenly. */
  private static final long[][] SHAPES = {{}, {0}, {2, 0, 3}, {1}, {4, 5}, {7, 643}};

  static Stream<ReduceOp> reductions() {
    return Stream.of(
        ReduceOp.SUM,
        ReduceOp.AVG,
        ReduceOp.PRODUCT,
        ReduceOp.MIN,
        ReduceOp.MAX,
        ReduceOp.BAND,
        ReduceOp.BOR,
        ReduceOp.BXOR,
        ReduceOp.premulSum(0.5));
  }

  private static boolean legal(ReduceOp op, DType dtype) {
    return switch (op.kind()) {
      case BAND, BOR, BXOR -> !dtype.isFloatingPoint();
      case AVG, PREMUL_SUM -> dtype.isFloatingPoint();
      default -> true;
    };
  }

  private void onRanks(OnRanks.Body body) {
    ranks.run(
        RANKS,
        (rank, world) -> {
          try (TensorScope scope = TensorScope.open()) {
            body.run(rank, world);
          }
        });
  }

  /** P28, P32: the whole matrix of dtypes and reductions, dense and strided. */
  @ParameterizedTest
  @MethodSource("reductions")
  void allReduceAndReduce(ReduceOp op) {
    onRanks(
        (rank, world) -> {
          for (DType dtype : DType.values()) {
            if (!legal(op, dtype)) {
              continue;
            }
            for (long[] shape : SHAPES) {
              for (boolean strided : new boolean[] {false, true}) {
                String what = op + " " + dtype + Arrays.toString(shape) + " " + strided;
                StridedTensor t = make(strided, rank, dtype, shape);
                Work done = world.allReduce(t, op);
                assertThat(done.isSuccess()).isTrue();
                same(Values.all(t), reduced(op, t));

                StridedTensor u = make(strided, rank, dtype, shape);
                Work unused = world.reduce(u, 1, op);
                same(
                    Values.all(u),
                    rank == 1 ? reduced(op, u) : Values.all(make(false, rank, dtype, shape)));
              }
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void movesWithoutReduction(DType dtype) {
    onRanks(
        (rank, world) -> {
          for (long[] shape : SHAPES) {
            for (boolean strided : new boolean[] {false, true}) {
              StridedTensor t = make(strided, rank, dtype, shape);
              Work unused = world.broadcast(t, 2);
              same(Values.all(t), dense(2, dtype, shape));

              StridedTensor in = make(strided, rank, dtype, shape);
              List<StridedTensor> outs = empties(strided, dtype, shape);
              unused = world.allGather(outs, in);
              checkByRank(outs, dtype, shape);

              outs = empties(strided, dtype, shape);
              unused = world.gather(in, rank == 1 ? outs : null, 1);
              if (rank == 1) {
                checkByRank(outs, dtype, shape);
              }

              // Rank r sends the values of rank 10 r + p to rank p.
              List<StridedTensor> ins = new ArrayList<>();
              for (int p = 0; p < RANKS; p++) {
                ins.add(make(strided, 10 * rank + p, dtype, shape));
              }
              outs = empties(strided, dtype, shape);
              unused = world.allToAll(outs, ins);
              for (int r = 0; r < RANKS; r++) {
                same(Values.all(outs.get(r)), dense(10 * r + rank, dtype, shape));
              }

              StridedTensor out = empties(strided, dtype, shape).get(0);
              unused = world.scatter(out, rank == 0 ? ins : null, 0);
              same(Values.all(out), dense(rank, dtype, shape));
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource
  void tensorForms(DType dtype) {
    onRanks(
        (rank, world) -> {
          for (long rows : new long[] {0, 1, 2, 700}) {
            for (boolean strided : new boolean[] {false, true}) {
              StridedTensor in = make(strided, rank, dtype, rows, 5);
              StridedTensor out = empties(strided, dtype, rows * RANKS, 5).get(0);
              Work unused = world.allGatherIntoTensor(out, in);
              double[] all =
                  IntStream.range(0, RANKS)
                      .mapToObj(r -> dense(r, dtype, rows, 5))
                      .flatMapToDouble(Arrays::stream)
                      .toArray();
              same(Values.all(out), all);

              StridedTensor whole = make(strided, rank, dtype, rows * RANKS, 5);
              StridedTensor part = empties(strided, dtype, rows, 5).get(0);
              unused = world.reduceScatterTensor(part, whole, ReduceOp.MAX);
              double[] reduced = reduced(ReduceOp.MAX, whole);
              int n = (int) rows * 5;
              same(Values.all(part), Arrays.copyOfRange(reduced, rank * n, (rank + 1) * n));

              // Rank r sends r + p rows to rank p.
              long[] splits = {rank, rank + 1L, rank + 2L};
              StridedTensor from = make(strided, rank, dtype, 3L * rank + 3, 2);
              StridedTensor to = empties(strided, dtype, 3L * rank + 3, 2).get(0);
              unused = world.allToAllSingle(to, from, splits, splits);
              same(Values.all(to), expectedRows(rank, dtype));
            }
          }
        });
  }

  private static double[] expectedRows(int rank, DType dtype) {
    return IntStream.range(0, RANKS)
        .mapToObj(
            r -> {
              int start = IntStream.range(0, rank).map(p -> r + p).sum() * 2;
              double[] all = dense(r, dtype, 3L * r + 3, 2);
              return Arrays.copyOfRange(all, start, start + (r + rank) * 2);
            })
        .flatMapToDouble(Arrays::stream)
        .toArray();
  }

  /** Halves are accumulated in float32 over all ranks and rounded once (DESIGN, section 7). */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void halvesAreRoundedOnce(DType dtype) {
    onRanks(
        (rank, world) -> {
          // 256 + 1 is 256 again in bfloat16; 2048 + 1 is 2048 in float16.
          double big = dtype == DType.BFLOAT16 ? 256 : 2048;
          StridedTensor t = Tensors.empty(dtype, 5000);
          for (int i = 0; i < 5000; i++) {
            Values.put(t, i, rank == 0 ? big : 1);
          }
          Work unused = world.allReduce(t, ReduceOp.SUM);
          double expected = Values.inDType(big + 2, dtype);
          assertThat(expected).isNotEqualTo(big);
          assertThat(Values.get(t, 0)).isEqualTo(expected);
          assertThat(Values.get(t, 4999)).isEqualTo(expected);
        });
  }

  /** MIN and MAX propagate NaN, whichever rank has it. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT64", "FLOAT32", "FLOAT16", "BFLOAT16"})
  void notANumberIsKept(DType dtype) {
    onRanks(
        (rank, world) -> {
          for (ReduceOp op : new ReduceOp[] {ReduceOp.MIN, ReduceOp.MAX, ReduceOp.SUM}) {
            StridedTensor t = Tensors.empty(dtype, RANKS + 1);
            for (int i = 0; i <= RANKS; i++) {
              Values.put(t, i, i == rank ? Double.NaN : rank);
            }
            Work unused = world.allReduce(t, op);
            for (int i = 0; i < RANKS; i++) {
              assertThat(Values.get(t, i)).as("%s of %s", op, dtype).isNaN();
            }
            assertThat(Values.get(t, RANKS)).isNotNaN();
          }
        });
  }

  /** Inputs that lie inside the output, as sharded parameters do. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "INT8"})
  void inputsMayLieInTheOutput(DType dtype) {
    onRanks(
        (rank, world) -> {
          long n = 6000;
          StridedTensor whole = Values.tensor(rank, dtype, n * RANKS);
          StridedTensor own = whole.withLayout(new long[] {n}, new long[] {1}, rank * n);
          double[] before = Values.all(own);
          Work unused = world.allGatherIntoTensor(whole, own);
          for (int r = 0; r < RANKS; r++) {
            double[] theirs = Values.all(Values.tensor(r, dtype, n * RANKS));
            same(
                Arrays.copyOfRange(Values.all(whole), (int) (r * n), (int) ((r + 1) * n)),
                Arrays.copyOfRange(theirs, (int) (r * n), (int) ((r + 1) * n)));
          }
          same(Values.all(own), before);

          StridedTensor sum = Values.tensor(rank, dtype, n * RANKS);
          // The result goes to a place that other ranks read.
          StridedTensor first = sum.withLayout(new long[] {n}, new long[] {1}, 0);
          double[] expected = reduced(ReduceOp.MIN, sum);
          unused = world.reduceScatterTensor(first, sum, ReduceOp.MIN);
          same(
              Values.all(first),
              Arrays.copyOfRange(expected, (int) (rank * n), (int) ((rank + 1) * n)));

          StridedTensor exchange = Values.tensor(rank, dtype, n * RANKS);
          unused = world.allToAllSingle(exchange, exchange, null, null);
          double[] other = Values.all(Values.tensor(1, dtype, n * RANKS));
          same(
              Arrays.copyOfRange(Values.all(exchange), (int) n, (int) (2 * n)),
              Arrays.copyOfRange(other, (int) (rank * n), (int) ((rank + 1) * n)));
        });
  }

  /** Compares all elements; quick where they are equal. */
  private static void same(double[] got, double[] expected) {
    if (!Arrays.equals(got, expected)) {
      assertThat(got).containsExactly(expected);
    }
  }

  private static StridedTensor make(boolean strided, int rank, DType dtype, long... shape) {
    return strided ? Values.strided(rank, dtype, shape) : Values.tensor(rank, dtype, shape);
  }

  private static List<StridedTensor> empties(boolean strided, DType dtype, long... shape) {
    List<StridedTensor> out = new ArrayList<>();
    for (int r = 0; r < RANKS; r++) {
      out.add(strided ? Values.stridedEmpty(dtype, shape) : Tensors.empty(dtype, shape));
    }
    return out;
  }

  private static double[] dense(int rank, DType dtype, long... shape) {
    return Values.all(Values.tensor(rank, dtype, shape));
  }

  private static double[] reduced(ReduceOp op, StridedTensor t) {
    StridedTensor out = Tensors.empty(t.dtype(), t.numel());
    for (int i = 0; i < t.numel(); i++) {
      Values.put(out, i, Values.reduced(op, t.dtype(), RANKS, i));
    }
    return Values.all(out);
  }

  private static void checkByRank(List<StridedTensor> outs, DType dtype, long... shape) {
    for (int r = 0; r < RANKS; r++) {
      same(Values.all(outs.get(r)), dense(r, dtype, shape));
    }
  }
}
