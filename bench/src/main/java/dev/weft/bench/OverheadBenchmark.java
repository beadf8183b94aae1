package dev.weft.bench;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.FakeWorld;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Creation;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BinaryOperator;
import java.util.function.Supplier;

/**
 * Host cost of a call on tiny tensors: plain operators, operators on distributed tensors (decision
 * cached or not), redistribution and collectives. One thread, one rank: alone, and as one of two
 * ranks of the {@code fake} backend, whose collectives cost nothing.
 */
public final class OverheadBenchmark {
  private static final int COLD = 50;
  private static final int COLD_WARM_UP = 1000;
  // Shapes that no benchmark of this process has used yet start here.
  private static final AtomicInteger COLD_NEXT = new AtomicInteger();

  private final Rows rows;
  private final Timing timing;
  private final int coldFrom = COLD_NEXT.getAndAdd(COLD_WARM_UP + COLD);

  /**
   * A benchmark.
   *
   * @param calls in a round of 7
   * @param warmUpMillis spent on each row before it is measured
   */
  public OverheadBenchmark(Rows rows, int calls, long warmUpMillis) {
    this.rows = rows;
    this.timing = new Timing(calls, warmUpMillis);
  }

  private static Tensor ones(long... shape) {
    return Creation.ones(DType.FLOAT32, shape);
  }

  /** Plain operators, which all else is compared with. */
  public void plain() {
    Tensor a = ones(8, 8);
    Tensor b = ones(8, 8);
    Autograd.noGrad(
        () -> {
          warm("plain_add", () -> a.add(b), 1, "shape", "8x8");
          warm("plain_mul", () -> a.mul(b), 1, "shape", "8x8");
          warm("plain_matmul", () -> a.matmul(b), 1, "shape", "8x8");
          warm("plain_view", () -> a.reshape(64), 1, "shape", "8x8");
          warm("plain_sum", () -> a.sum(), 1, "shape", "8x8");
        });
    Tensor w = ones(8, 8).requiresGrad(true);
    warm("plain_linear_fwd_bwd", () -> backward(a.matmul(w).sum()), 4, "shape", "8x8");
  }

  private static Tensor backward(Tensor loss) {
    loss.backward();
    return loss;
  }

  /** Distributed operators and redistribution on a mesh of one rank, and as one of two ranks. */
  public void distributed() {
    LocalWorld.run(
        1,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 1, 1);
          new OnMesh(mesh, "1x1 gloo").all();
        });
    FakeWorld.run(
        0, 2, rank -> new OnMesh(DeviceMesh.initDeviceMesh("cpu", 2, 1), "2x1 fake").all());
  }

  /** Collectives of a group of one rank. */
  public void collectives() {
    LocalWorld.run(
        1,
        rank -> {
          Tensor x = ones(16);
          ProcessGroup group = DeviceMesh.initDeviceMesh("cpu", 1).getGroup();
          warm(
              "all_reduce_host",
              () -> group.allReduce(x, ReduceOp.SUM),
              1,
              "world",
              1,
              "mode",
              "sync",
              "backend",
              "gloo");
          warm(
              "all_reduce_host",
              () -> {
                var work = group.allReduce(x, ReduceOp.SUM, CollectiveOptions.ASYNC);
                work.await();
                return work;
              },
              1,
              "world",
              1,
              "mode",
              "async+wait",
              "backend",
              "gloo");
          warm(
              "functional_all_reduce_host",
              () -> {
                Tensor sum = FunctionalCollectives.allReduce(x, ReduceOp.SUM, group);
                sum.storages().get(0).await();
                return sum;
              },
              1,
              "world",
              1,
              "backend",
              "gloo");
        });
  }

  private void warm(String bench, Supplier<?> call, int divisor, Object... params) {
    rows.add(bench, timing.warm(call, divisor), params);
  }

  /** The rows of one mesh, whose first dimension cuts. */
  private final class OnMesh {
    private final DeviceMesh mesh;
    private final String tag;
    private final int n;

    OnMesh(DeviceMesh mesh, String tag) {
      this.mesh = mesh;
      this.tag = tag;
      this.n = mesh.size();
    }

    private DTensor make(Placement p, long... shape) {
      long[] local = shape.clone();
      if (p.isShard()) {
        local[p.shardDim()] /= n;
      }
      return DTensor.fromLocal(ones(local), mesh, p, replicate());
    }

    void all() {
      DTensor r = make(replicate(), 8, 8);
      DTensor s0 = make(shard(0), 8, 8);
      DTensor s1 = make(shard(1), 8, 8);
      DTensor p = make(partial(), 8, 8);
      Autograd.noGrad(
          () -> {
            operators(r, s0, s1);
            redistributions(r, s0, p);
            cold();
          });
      Tensor w = make(replicate(), 8, 8).requiresGrad(true);
      row("dtensor_linear_fwd_bwd", "S0,R", () -> backward(s0.matmul(w).sum()), 8);
    }

    private void row(String bench, String placements, Supplier<?> call, int divisor) {
      warm(
          bench,
          call,
          divisor,
          "placements",
          placements,
          "cache",
          "warm",
          "mesh",
          tag,
          "shape",
          "8x8");
    }

    private void operators(DTensor r, DTensor s0, DTensor s1) {
      row("dtensor_add", "R,R", () -> r.add(r), 1);
      row("dtensor_add", "S0,S0", () -> s0.add(s0), 1);
      row("dtensor_mul", "S0,S0", () -> s0.mul(s0), 1);
      row("dtensor_mul", "S0,scalar", () -> s0.mul(2.0), 1);
      row("dtensor_matmul", "S0,R", () -> s0.matmul(r), 1);
      row("dtensor_matmul", "S1,S0", () -> s1.matmul(s0), 1);
      row("dtensor_matmul", "R,S1", () -> r.matmul(s1), 1);
      row("dtensor_sum", "S0", () -> s0.sum(), 1);
      Tensor local = s0.toLocal();
      warm(
          "dtensor_from_local",
          () -> DTensor.fromLocal(local, mesh, shard(0), replicate()),
          1,
          "mesh",
          tag,
          "shape",
          "8x8");
      warm("dtensor_to_local", () -> s0.toLocal(), 1, "mesh", tag, "shape", "8x8");
    }

    private void redistributions(DTensor r, DTensor s0, DTensor p) {
      move("S0->R", s0, replicate());
      move("R->S0", r, shard(0));
      move("P->R", p, replicate());
      move("P->S0", p, shard(0));
      move("S0->S1", s0, shard(1));
      move("R->R", r, replicate());
    }

    private void move(String name, DTensor from, Placement to) {
      List<Placement> target = List.of(to, replicate());
      row("dtensor_redistribute", name, () -> from.redistribute(target), 4);
    }

    private void cold() {
      coldPair("dtensor_add", "S0,S0", (a, b) -> a.add(b), shard(0), false);
      coldPair("dtensor_mul", "S0,S0", (a, b) -> a.mul(b), shard(0), false);
      coldPair("dtensor_matmul", "S0,R", (a, b) -> a.matmul(b), replicate(), true);
      List<Placement> whole = List.of(replicate(), replicate());
      rows.add(
          "dtensor_redistribute",
          Timing.cold(
              i -> make(shard(0), 1000 + 2L * i, 8),
              (DTensor t) -> t.redistribute(whole),
              coldFrom,
              COLD_WARM_UP,
              COLD),
          "cache",
          "cold",
          "placements",
          "S0->R",
          "mesh",
          tag);
    }

    /** Shapes grow slowly, so that the arithmetic stays small beside the decision. */
    private void coldPair(
        String bench,
        String placements,
        BinaryOperator<Tensor> op,
        Placement second,
        boolean square) {
      rows.add(
          bench,
          Timing.cold(
              i -> {
                // Distinct for each index, and of bounded size: i = rows and columns together.
                long m = 8 + 2L * (i % 40) + (n == 1 ? 0 : 400);
                long k = square ? m : 8;
                long extra = i / 40;
                return new Tensor[] {
                  make(shard(0), m, k + extra),
                  make(second, square ? k + extra : m, square ? m : k + extra)
                };
              },
              (Tensor[] t) -> op.apply(t[0], t[1]),
              coldFrom,
              COLD_WARM_UP,
              COLD),
          "cache",
          "cold",
          "placements",
          placements,
          "mesh",
          tag);
    }
  }
}
