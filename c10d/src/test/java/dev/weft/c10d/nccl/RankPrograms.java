package dev.weft.c10d.nccl;

import static dev.weft.c10d.nccl.NcclRank.say;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.NullChecks;
import dev.weft.c10d.ObjectCollectives;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.P2POp;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** The programs of ranks, each of which uses its thread's current device. */
final class RankPrograms {
  private static final DType[] REDUCED = {
    DType.FLOAT32,
    DType.FLOAT64,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT64,
    DType.INT32,
    DType.INT8,
    DType.UINT8
  };

  private RankPrograms() {}

  static void run(String what, ProcessGroup g) {
    switch (what) {
      case "collectives", "only-collectives", "bound-collectives" -> collectives(g);
      case "messages" -> messages(g);
      case "large-batch" -> largeBatch(g);
      case "objects", "only-objects" -> objects(g);
      case "cache" -> cache(g);
      case "bound-split" -> split(g);
      case "bound-shrink" -> shrink(g);
      case "destroy-any-order" -> destroyAnyOrder(g);
      case "two-threads" -> twoThreads(g);
      case "abort" -> abort(g);
      case "forever" -> forever(g);
      case "null-checks" -> {
        g.allReduce(gpu(1), ReduceOp.SUM).await();
        NullChecks.survive();
        say("null checks hold");
        forever(g);
      }
      case "brief-missing" -> missing(g);
      case "brief-absent" -> absent(g);
      case "brief-bound-stuck" -> stuck(g);
      case "brief-lonely-send" -> lonelySend(g);
      case "no-close" -> {
        Work unused = g.allReduce(gpu(1), ReduceOp.SUM, CollectiveOptions.ASYNC);
        say("ending without closing");
        System.exit(0);
      }
      default -> throw new IllegalArgumentException(what);
    }
  }

  static Tensor gpu(double... values) {
    return gpu(DType.FLOAT32, values);
  }

  static Tensor gpu(DType dtype, double... values) {
    return Tensor.of(values, values.length).to(dtype).to(Device.cuda(Cuda.currentDevice()));
  }

  private static void same(String what, Tensor got, double... expected) {
    assertThat(got.toDoubleArray()).as(what).containsExactly(expected);
  }

  private static double[] filled(int n, double value) {
    double[] out = new double[n];
    java.util.Arrays.fill(out, value);
    return out;
  }

  private static void collectives(ProcessGroup g) {
    int n = g.size();
    int me = g.rank();
    double sum = n * (n + 1) / 2.0;
    for (DType d : REDUCED) {
      for (boolean async : new boolean[] {false, true}) {
        CollectiveOptions o = CollectiveOptions.async(async);
        Tensor t = gpu(d, me + 1, 2, me);
        g.allReduce(t, ReduceOp.SUM, o).await();
        same("all_reduce sum " + d + " async " + async, t, sum, 2 * n, sum - n);
        t = gpu(d, me + 1, 2);
        g.allReduce(t, ReduceOp.MAX, o).await();
        same("all_reduce max " + d, t, n, 2);
        g.allReduce(t, ReduceOp.MIN, o).await();
        same("all_reduce min " + d, t, n, 2);
        t = gpu(d, 1, 2);
        g.allReduce(t, ReduceOp.PRODUCT, o).await();
        same("all_reduce product " + d, t, 1, Math.pow(2, n));
        if (d.isFloatingPoint()) {
          t = gpu(d, me + 1, 4);
          g.allReduce(t, ReduceOp.AVG, o).await();
          same("all_reduce avg " + d, t, sum / n, 4);
          t = gpu(d, me + 1, 4);
          g.allReduce(t, ReduceOp.premulSum(0.5), o).await();
          same("all_reduce premul_sum " + d, t, sum / 2, 2 * n);
        }
        t = gpu(d, me + 1, 5);
        g.reduce(t, n - 1, ReduceOp.SUM, o).await();
        if (me == n - 1) {
          same("reduce " + d, t, sum, 5 * n);
        }
      }
    }
    truth(g);
    moves(g);
    scatters(g);
    refusals(g);
    g.barrier().await();
    g.barrier(CollectiveOptions.ASYNC).await();
  }

  private static void truth(ProcessGroup g) {
    Tensor t = gpu(DType.BOOL, g.rank() == 0 ? 1 : 0, 0, 1);
    g.allReduce(t, ReduceOp.SUM).await();
    same("all_reduce sum bool", t, 1, 0, 1);
    t = gpu(DType.BOOL, g.rank() == 0 ? 1 : 0, 0, 1);
    g.allReduce(t, ReduceOp.PRODUCT).await();
    same("all_reduce product bool", t, g.size() == 1 ? 1 : 0, 0, 1);
  }

  /** Also int16, which NCCL does not know, and tensors with strides, and without elements. */
  private static void moves(ProcessGroup g) {
    int n = g.size();
    int me = g.rank();
    for (DType d : DType.values()) {
      boolean bool = d == DType.BOOL;
      Tensor t = gpu(d, bool ? me % 2 : me, 1);
      g.broadcast(t, n - 1).await();
      same("broadcast " + d, t, bool ? (n - 1) % 2 : n - 1, 1);
      Tensor all = gpu(d, new double[2 * n]);
      g.allGatherIntoTensor(all, gpu(d, 1, bool ? 1 : me)).await();
      double[] expected = new double[2 * n];
      for (int r = 0; r < n; r++) {
        expected[2 * r] = 1;
        expected[2 * r + 1] = bool ? 1 : r;
      }
      same("all_gather_into_tensor " + d, all, expected);
    }
    Tensor columns = gpu(IntStream.range(0, 6).mapToDouble(i -> i + me).toArray());
    Tensor transposed = columns.reshape(2, 3).transpose(0, 1);
    g.allReduce(transposed, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
    double extra = n * (n - 1) / 2.0;
    same(
        "all_reduce of a transposed tensor",
        columns,
        IntStream.range(0, 6).mapToDouble(i -> i * n + extra).toArray());
    Tensor empty = gpu();
    g.allReduce(empty, ReduceOp.SUM).await();
    g.allGatherIntoTensor(gpu(), empty).await();
    // Sizes differ between ranks.
    List<Tensor> outs = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      outs.add(gpu(new double[r + 1]));
    }
    g.allGather(outs, gpu(filled(me + 1, me + 1))).await();
    for (int r = 0; r < n; r++) {
      same("uneven all_gather", outs.get(r), filled(r + 1, r + 1));
    }
    List<Tensor> equal = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      equal.add(gpu(0, 0));
    }
    g.allGather(equal, gpu(me, 7), CollectiveOptions.ASYNC).await();
    for (int r = 0; r < n; r++) {
      same("all_gather", equal.get(r), r, 7);
    }
  }

  private static void scatters(ProcessGroup g) {
    int n = g.size();
    int me = g.rank();
    double sum = n * (n + 1) / 2.0;
    List<Tensor> uneven = new ArrayList<>();
    List<Tensor> even = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      uneven.add(gpu(filled(r + 1, (me + 1) * (r + 1))));
      even.add(gpu((me + 1) * (r + 1)));
    }
    Tensor out = gpu(new double[me + 1]);
    g.reduceScatter(out, uneven, ReduceOp.SUM).await();
    same("uneven reduce_scatter", out, filled(me + 1, sum * (me + 1)));
    out = gpu(0);
    g.reduceScatter(out, even, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
    same("reduce_scatter", out, sum * (me + 1));
    Tensor whole = gpu(IntStream.range(0, n).mapToDouble(r -> (me + 1) * (r + 1)).toArray());
    out = gpu(0);
    g.reduceScatterTensor(out, whole, ReduceOp.AVG).await();
    same("reduce_scatter_tensor avg", out, sum * (me + 1) / n);

    Tensor swapped = gpu(new double[n]);
    g.allToAllSingle(
            swapped, gpu(IntStream.range(0, n).mapToDouble(r -> 10 * me + r).toArray()), null, null)
        .await();
    same(
        "all_to_all_single",
        swapped,
        IntStream.range(0, n).mapToDouble(r -> 10 * r + me).toArray());
    // Rank r sends r + 1 rows to everyone.
    long[] in = IntStream.range(0, n).mapToLong(r -> me + 1).toArray();
    long[] outSplits = IntStream.range(0, n).mapToLong(r -> r + 1).toArray();
    Tensor got = gpu(new double[n * (n + 1) / 2]);
    g.allToAllSingle(got, gpu(filled(n * (me + 1), me)), outSplits, in, CollectiveOptions.ASYNC)
        .await();
    double[] expected = new double[n * (n + 1) / 2];
    int at = 0;
    for (int r = 0; r < n; r++) {
      for (int i = 0; i <= r; i++) {
        expected[at++] = r;
      }
    }
    same("uneven all_to_all_single", got, expected);

    List<Tensor> lists = new ArrayList<>();
    List<Tensor> ins = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      lists.add(gpu(new double[r + 1]));
      ins.add(gpu(filled(me + 1, 100 * me + r)));
    }
    g.allToAll(lists, ins).await();
    for (int r = 0; r < n; r++) {
      same("all_to_all", lists.get(r), filled(r + 1, 100 * r + me));
    }
    List<Tensor> gathered = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      gathered.add(gpu(0, 0));
    }
    g.gather(gpu(me, 1), me == 0 ? gathered : null, 0).await();
    for (int r = 0; r < n && me == 0; r++) {
      same("gather", gathered.get(r), r, 1);
    }
    Tensor mine = gpu(0);
    g.scatter(mine, me == n - 1 ? even : null, n - 1).await();
    same("scatter", mine, n * (me + 1));
    List<Tensor> several = List.of(gpu(me + 1), gpu(1, 1));
    g.allReduceCoalesced(several, ReduceOp.SUM, CollectiveOptions.SYNC).await();
    same("all_reduce_coalesced", several.get(0), sum);
    same("all_reduce_coalesced", several.get(1), n, n);
  }

  private static void refusals(ProcessGroup g) {
    assertThatThrownBy(() -> g.allReduce(gpu(DType.INT32, 1), ReduceOp.BAND))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("reduce op band cannot be used with the nccl backend");
    assertThatThrownBy(() -> g.allReduce(gpu(DType.INT16, 1), ReduceOp.SUM))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("int16 cannot be reduced");
    assertThatThrownBy(() -> g.allReduce(gpu(DType.INT32, 1), ReduceOp.AVG))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("does not work on dtype int32");
    assertThatThrownBy(() -> g.recv(gpu(1), ProcessGroup.ANY_SOURCE, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("any rank");
  }

  private static void messages(ProcessGroup g) {
    int n = g.size();
    int me = g.rank();
    if (me < 2) {
      for (int i = 0; i < 3; i++) {
        Tensor t = gpu(me == 0 ? i : -1);
        Work w = me == 0 ? g.send(t, 1, 0) : g.recv(t, 0, 0);
        w.await();
        same("send and recv", t, i);
      }
      Tensor t = gpu(me == 1 ? 42 : 0, 1);
      Work w = me == 1 ? g.isend(t, 0, 0) : g.irecv(t, 1, 0);
      w.await();
      same("isend and irecv", t, 42, 1);
      w.await(Duration.ofSeconds(30));
      assertThat(w.isCompleted()).isTrue();
    }
    List<P2POp> ops = new ArrayList<>();
    List<Tensor> got = new ArrayList<>();
    for (int r = 0; r < n; r++) {
      Tensor t = gpu(0, 0);
      got.add(t);
      if (r != me) {
        ops.add(P2POp.isend(gpu(me, r), r));
        ops.add(P2POp.irecv(t, r));
      }
    }
    Distributed.batchIsendIrecv(ops).forEach(Work::await);
    for (int r = 0; r < n; r++) {
      if (r != me) {
        same("batch", got.get(r), r, me);
      }
    }
  }

  /** P33. */
  private static void largeBatch(ProcessGroup g) {
    int me = g.rank();
    List<P2POp> ops = new ArrayList<>();
    List<Tensor> got = new ArrayList<>();
    for (int r = 0; r < g.size(); r++) {
      for (int i = 0; i < 300 && r != me; i++) {
        Tensor t = gpu(-1);
        got.add(t);
        ops.add(P2POp.irecv(t, r));
        ops.add(P2POp.isend(gpu(1000 * me + i), r));
      }
    }
    Distributed.batchIsendIrecv(ops).forEach(Work::await);
    int at = 0;
    for (int r = 0; r < g.size(); r++) {
      for (int i = 0; i < 300 && r != me; i++) {
        same("message " + i + " of rank " + r, got.get(at++), 1000 * r + i);
      }
    }
  }

  private static void objects(ProcessGroup g) {
    assertThat(ObjectCollectives.allGatherObject("rank " + g.rank(), String.class, g))
        .isEqualTo(IntStream.range(0, g.size()).mapToObj(r -> "rank " + r).toList());
    assertThat(
            ObjectCollectives.broadcastObjectList(
                List.of(g.rank() == 0 ? "root" : "other"), String.class, 0, g))
        .isEqualTo(List.of("root"));
    assertThat(
            ObjectCollectives.scatterObject(
                g.rank() == 0 ? IntStream.range(0, g.size()).boxed().toList() : null,
                Integer.class,
                0,
                g))
        .isEqualTo(g.rank());
  }

  /** Experiment (a): communicators by group and rank, none by later operations. */
  private static void cache(ProcessGroup g) {
    List<Integer> all = g.ranks();
    ProcessGroup clone = Distributed.newGroup(all, GroupOptions.DEFAULT);
    ProcessGroup high =
        Distributed.newGroup(
            all,
            GroupOptions.DEFAULT.withBackendOptions(
                NcclOptions.fromEnvironment().withHighPriorityStream(true)));
    assertThat(Nccl.communicatorsCreated()).isZero();
    long expected = 0;
    for (ProcessGroup each : List.of(g, clone, high)) {
      expected++;
      for (int i = 0; i < 3; i++) {
        Tensor t = gpu(g.rank() + 1);
        each.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
        same("all_reduce in " + each, t, g.size() * (g.size() + 1) / 2.0);
        assertThat(Nccl.communicatorsCreated()).isEqualTo(expected);
        say("operation");
      }
    }
    List<Nccl.Communicator> live = Nccl.communicators();
    assertThat(live)
        .extracting(Nccl.Communicator::highPriority)
        .containsExactly(false, false, true);
    assertThat(live)
        .extracting(Nccl.Communicator::key)
        .containsOnly(String.valueOf(Cuda.currentDevice()));
    say("communicators " + Nccl.communicatorsCreated());
    say("memory " + live);
  }

  /** Counts are those of a process: they say what a rank made where it is one. */
  private static void created(String what, long expected) {
    if (!RankContext.current().isThreadWorld()) {
      assertThat(Nccl.communicatorsCreated()).as(what).isEqualTo(expected);
    }
  }

  private static void split(ProcessGroup g) {
    created("eager, with a bound device", 1);
    int half = g.size() / 2;
    ProcessGroup part =
        Distributed.splitGroup(
            g,
            List.of(IntStream.range(0, half).toArray(), IntStream.range(half, g.size()).toArray()));
    created("made by the split", 2);
    Tensor t = gpu(1 << g.rank());
    part.allReduce(t, ReduceOp.SUM).await();
    double expected = part.ranks().stream().mapToInt(r -> 1 << r).sum();
    same("all_reduce in a part", t, expected);
    created("none by an operation", 2);
    ProcessGroup some = Distributed.splitGroup(g, List.of(new int[] {0}));
    assertThat(some.isMember()).isEqualTo(g.rank() == 0);
    part.destroy();
    t = gpu(1);
    g.allReduce(t, ReduceOp.SUM).await();
    same("the parent goes on", t, g.size());
  }

  private static void shrink(ProcessGroup g) {
    if (NcclLibrary.version() < NcclLibrary.WITH_SHRINK) {
      say("this NCCL cannot shrink");
      return;
    }
    int last = g.size() - 1;
    if (g.rank() == last) {
      g.barrier().await();
      return;
    }
    g.barrier().await();
    ProcessGroup rest = Distributed.shrinkGroup(g, List.of(last), false);
    Tensor t = gpu(1);
    rest.allReduce(t, ReduceOp.SUM).await();
    same("all_reduce of the rest", t, last);
  }

  /** P49. */
  private static void destroyAnyOrder(ProcessGroup g) {
    ProcessGroup a = Distributed.newGroup(g.ranks(), GroupOptions.DEFAULT);
    ProcessGroup b = Distributed.newGroup(g.ranks(), GroupOptions.DEFAULT);
    for (ProcessGroup each : List.of(g, a, b)) {
      Work unused = each.allReduce(gpu(1), ReduceOp.SUM, CollectiveOptions.ASYNC);
    }
    long start = System.nanoTime();
    for (ProcessGroup each : g.rank() % 2 == 0 ? List.of(a, b) : List.of(b, a)) {
      each.destroy();
      each.destroy();
    }
    assertThat(System.nanoTime() - start).isLessThan(30_000_000_000L);
    if (!RankContext.current().isThreadWorld()) {
      assertThat(Nccl.communicators()).hasSize(1);
    }
  }

  /** P41: two communicators, two threads. */
  private static void twoThreads(ProcessGroup g) {
    ProcessGroup other = Distributed.newGroup(g.ranks(), GroupOptions.DEFAULT);
    List<Throwable> failures = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    int device = Cuda.currentDevice();
    for (ProcessGroup each : List.of(g, other)) {
      Thread t =
          new Thread(
              RankContext.wrap(
                  () -> {
                    Cuda.setDevice(device);
                    // Streams of their own: on one, each rank would set another order.
                    try (CudaStream stream = CudaStream.create(device, false);
                        CudaStream.InUse use = stream.use()) {
                      for (int i = 0; i < 50; i++) {
                        Tensor x = gpu(i);
                        each.allReduce(x, ReduceOp.SUM, CollectiveOptions.ASYNC).await();
                        same("round " + i, x, (double) i * g.size());
                      }
                      stream.synchronize();
                    }
                  }));
      t.setUncaughtExceptionHandler(
          (thread, e) -> {
            synchronized (failures) {
              failures.add(e);
            }
          });
      threads.add(t);
    }
    threads.forEach(Thread::start);
    for (Thread t : threads) {
      try {
        t.join();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    assertThat(failures).isEmpty();
  }

  /** A rank that waits on the host for one that does not come is freed by an abort. */
  private static void abort(ProcessGroup g) {
    Tensor t = gpu(1);
    g.allReduce(t, ReduceOp.SUM).await();
    if (g.rank() != 0) {
      say("does not come");
      return;
    }
    Work work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
    Thread aborter =
        new Thread(
            () -> {
              try {
                Thread.sleep(500);
              } catch (InterruptedException e) {
                return;
              }
              g.abort(new IllegalStateException("enough"));
            });
    aborter.start();
    long start = System.nanoTime();
    assertThatThrownBy(() -> work.await(Duration.ofSeconds(40))).hasMessageContaining("enough");
    Cuda.synchronize(Cuda.currentDevice());
    assertThat(System.nanoTime() - start).isLessThan(20_000_000_000L);
    assertThat(work.isCompleted()).isTrue();
    assertThat(work.isSuccess()).isFalse();
    assertThatThrownBy(() -> g.allReduce(t, ReduceOp.SUM)).hasMessageContaining("unusable");
    say("freed");
  }

  private static void forever(ProcessGroup g) {
    for (int i = 0; ; i++) {
      Tensor t = gpu(1);
      g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await(Duration.ofSeconds(60));
      if (i == 2) {
        say("running");
      }
    }
  }

  /** A rank that does not take part is noticed at the timeout, without anybody waiting. */
  private static void missing(ProcessGroup g) {
    Tensor t = gpu(1);
    g.allReduce(t, ReduceOp.SUM).await();
    Cuda.synchronize(Cuda.currentDevice());
    if (g.rank() == 1) {
      try {
        Thread.sleep(12_000);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      return;
    }
    Work work = g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC);
    work.await();
    assertThatThrownBy(() -> work.completion().get(30, java.util.concurrent.TimeUnit.SECONDS))
        .hasCauseInstanceOf(OperationTimeoutException.class)
        .hasMessageContaining("timed out after 5000 ms");
    say("noticed: " + work.exception().getMessage());
  }

  private static void stay(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A rank that does not come to the first collective is named. */
  private static void absent(ProcessGroup g) {
    if (g.rank() == 1) {
      stay(9_000);
      return;
    }
    assertThatThrownBy(() -> g.allReduce(gpu(1), ReduceOp.SUM))
        .isInstanceOf(OperationTimeoutException.class)
        .hasMessageContaining("timed out after 5000 ms: rank 1 did not come");
    say("named");
    // Rank 0 serves the store, which the other one asks still.
    if (g.rank() == 0) {
      RankContext.current().store().waitFor(List.of("named"), Duration.ofSeconds(20));
    } else {
      RankContext.current().store().set("named", new byte[1]);
    }
  }

  /** All made the communicator; the first operation, which connects, waits inside NCCL. */
  private static void stuck(ProcessGroup g) {
    assertThat(Nccl.communicatorsCreated()).isEqualTo(1);
    if (g.rank() == 1) {
      stay(14_000);
      return;
    }
    Tensor t = gpu(1);
    long start = System.nanoTime();
    assertThatThrownBy(
            () ->
                g.allReduce(t, ReduceOp.SUM, CollectiveOptions.ASYNC).await(Duration.ofMinutes(1)))
        .hasMessageContaining("timed out after 5000 ms");
    assertThat(System.nanoTime() - start).isLessThan(12_000_000_000L);
    assertThatThrownBy(() -> g.allReduce(t, ReduceOp.SUM)).hasMessageContaining("unusable");
    say("freed");
  }

  /** P34: posting a send does not wait for the receiver; awaiting it ends by name. */
  private static void lonelySend(ProcessGroup g) {
    if (g.rank() != 0) {
      try {
        Thread.sleep(8_000);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      return;
    }
    long start = System.nanoTime();
    Work work = g.isend(gpu(1), 1, 0);
    assertThat(System.nanoTime() - start).as("posting").isLessThan(3_000_000_000L);
    assertThatThrownBy(() -> work.await(Duration.ofSeconds(2)))
        .isInstanceOf(OperationTimeoutException.class)
        .hasMessageContaining("send to rank 1");
    say("named");
  }

  static StridedTensor plain(Tensor t) {
    return (StridedTensor) t;
  }
}
