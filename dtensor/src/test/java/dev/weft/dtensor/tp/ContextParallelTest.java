package dev.weft.dtensor.tp;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Random;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Attention over a sequence that ranks share equals attention on one rank, gradients too. */
class ContextParallelTest {
  private static Tensor input(int seed, long length) {
    return Random.randn(new Generator(seed), DType.FLOAT32, 2, 3, length, 4);
  }

  /** The output and the gradients of query, key and value. */
  private static List<double[]> dense(long length, boolean causal) {
    List<Tensor> in = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      in.add(input(i, length).requiresGrad(true));
    }
    Tensor mask = causal ? Attention.causalMask(length, length) : null;
    Tensor out = Attention.scaledDotProduct(in.get(0), in.get(1), in.get(2), mask);
    out.mul(input(3, length)).sum().backward();
    return numbers(out, in);
  }

  private static List<double[]> numbers(Tensor out, List<Tensor> in) {
    List<double[]> all = new ArrayList<>(List.of(out.toDoubleArray()));
    for (Tensor t : in) {
      Tensor g = t.grad();
      assertThat(g).isNotNull();
      all.add(g == null ? new double[0] : g.toDoubleArray());
    }
    return all;
  }

  private static void close(List<double[]> got, List<double[]> want) {
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(i)).as("%d", i).containsExactly(want.get(i), Offset.offset(1e-5));
    }
  }

  private static void check(
      int[] meshShape,
      List<Placement> placements,
      long length,
      boolean causal,
      ContextParallel.Order order) {
    List<double[]> want = dense(length, causal);
    boolean zigzag = order == ContextParallel.Order.ZIGZAG;
    int world = 1;
    for (int n : meshShape) {
      world *= n;
    }
    LocalWorld.run(
        world,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", meshShape);
          int n = meshShape[meshShape.length - 1];
          List<Tensor> whole = new ArrayList<>();
          List<DTensor> placed = new ArrayList<>();
          for (int i = 0; i < 4; i++) {
            Tensor leaf =
                DTensor.distributeTensor(input(i, length), mesh, List.of(all(mesh)), null);
            whole.add(leaf.requiresGrad(true));
            Tensor t = zigzag ? ContextParallel.zigzag(leaf, 2, n) : leaf;
            placed.add(((DTensor) t).redistribute(placements));
          }
          DTensor out =
              ContextParallel.attention(placed.get(0), placed.get(1), placed.get(2), causal, order);
          assertThat(out.placements()).isEqualTo(placements);
          out.mul(placed.get(3)).sum().backward();
          Tensor result = out.redistribute(all(mesh));
          close(
              numbers(
                  zigzag ? ContextParallel.unzigzag(result, 2, n) : result, whole.subList(0, 3)),
              want);
        });
  }

  private static Placement[] all(DeviceMesh mesh) {
    return java.util.Collections.nCopies(mesh.ndim(), replicate()).toArray(new Placement[0]);
  }

  @ParameterizedTest
  @CsvSource({"2, 8", "4, 8", "2, 5", "4, 6", "3, 7", "1, 4"})
  void equalsOneRankWhateverTheLength(int ranks, long length) {
    for (boolean causal : new boolean[] {true, false}) {
      check(new int[] {ranks}, List.of(shard(2)), length, causal, ContextParallel.Order.SEQUENTIAL);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 8", "4, 16", "4, 8"})
  void equalsOneRankInZigzagOrder(int ranks, long length) {
    for (boolean causal : new boolean[] {true, false}) {
      check(new int[] {ranks}, List.of(shard(2)), length, causal, ContextParallel.Order.ZIGZAG);
    }
  }

  @Test
  void headsOrBatchMayBeCutBesides() {
    check(new int[] {2, 2}, List.of(shard(1), shard(2)), 6, true, ContextParallel.Order.SEQUENTIAL);
    check(new int[] {2, 2}, List.of(shard(0), shard(2)), 8, true, ContextParallel.Order.ZIGZAG);
  }

  /** Multiplications of matrices on each rank; of the causal ones those that see nothing go. */
  private static int[] products(ContextParallel.Order order) {
    int[] counts = new int[4];
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 4);
          Tensor x = Random.randn(new Generator(1), DType.FLOAT32, 1, 4, 2);
          AtomicInteger count = new AtomicInteger();
          try (Dispatcher.Installed installed =
              Dispatcher.install(
                  call -> {
                    count.addAndGet(call.op().name().equals("matmul") ? 1 : 0);
                    return call.proceed();
                  })) {
            Tensor unused = ContextParallel.attention(x, x, x, mesh, true, order);
          }
          counts[rank] = count.get();
        });
    return counts;
  }

  @Test
  void zigzagBalancesTheWork() {
    assertThat(products(ContextParallel.Order.SEQUENTIAL)).containsExactly(2, 4, 6, 8);
    assertThat(products(ContextParallel.Order.ZIGZAG)).containsOnly(18);
  }

  @Test
  void zigzagIsUndone() {
    Tensor x = Random.randn(new Generator(1), DType.FLOAT32, 2, 12);
    Tensor z = ContextParallel.zigzag(x, 1, 3);
    assertThat(z.toFloatArray()).isNotEqualTo(x.toFloatArray());
    assertThat(ContextParallel.unzigzag(z, 1, 3).toFloatArray()).isEqualTo(x.toFloatArray());
  }

  @Test
  void whatDoesNotFitIsNamed() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor x = DTensor.distributeTensor(input(0, 6), mesh, List.of(shard(2)), null);
          assertThatThrownBy(
                  () -> ContextParallel.attention(x, x, x, true, ContextParallel.Order.ZIGZAG))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("6 positions")
              .hasMessageContaining("multiple of 4");
          DTensor heads = x.redistribute(shard(1));
          assertThatThrownBy(
                  () ->
                      ContextParallel.attention(
                          heads, heads, heads, true, ContextParallel.Order.SEQUENTIAL))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("[S(1)]")
              .hasMessageContaining("S(2)");
          DTensor longer = DTensor.distributeTensor(input(0, 8), mesh, List.of(shard(2)), null);
          assertThatThrownBy(
                  () ->
                      ContextParallel.attention(
                          x, longer, longer, true, ContextParallel.Order.SEQUENTIAL))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("key is");
        });
  }
}
