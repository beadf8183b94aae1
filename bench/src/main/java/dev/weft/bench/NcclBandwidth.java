package dev.weft.bench;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.P2POp;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.op.Creation;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;

/**
 * Time and bus bandwidth of collectives over several GPUs, through Weft and through bare NCCL calls
 * of the same process, in turns. float32; sizes as nccl-tests has them: the whole output of
 * all_gather, the whole input of reduce_scatter and all_to_all. One rank a GPU.
 *
 * <p>Two times a size: a call among many that are enqueued one behind the other (from which the
 * bandwidth comes), and up to 1 MiB a call that the host waits for. Bus bandwidth: NCCL's own
 * definition (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
 */
public final class NcclBandwidth {
  private static final long KIB = 1 << 10;
  private static final long MIB = 1 << 20;
  private static final long GIB = 1 << 30;
  private static final long[] SIZES = {
    8, 64, KIB, 8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB,
    4 * GIB
  };
  private static final int ROUNDS = 7;
  private static final long WAITED_FOR = MIB;
  private static final int WARM_UPS = 6;

  private final ProcessGroup group;
  private final BareNccl bare;
  private final Device device;
  private final int n;
  private final String ranks;
  private final List<Rows> rows;
  private final Tensor a;
  private final Tensor b;
  private boolean measures;

  private NcclBandwidth(
      ProcessGroup group, BareNccl bare, Device device, String ranks, List<Rows> rows, long most) {
    this.group = group;
    this.bare = bare;
    this.device = device;
    this.n = group.size();
    this.ranks = ranks;
    this.rows = rows;
    this.a = Creation.full(0, DType.FLOAT32, device, most / 4);
    this.b = Creation.full(0, DType.FLOAT32, device, most / 4);
  }

  /**
   * Starts so many ranks and prints the rows of rank 0.
   *
   * @param threads whether ranks are threads of this JVM, not processes
   * @param most the largest size in bytes
   * @return the exit code
   */
  public static int start(int ranks, boolean threads, long most, PrintStream out) {
    if (ranks > Cuda.deviceCount()) {
      throw new IllegalArgumentException(
          "--ranks " + ranks + "; expected at most the " + Cuda.deviceCount() + " GPUs here");
    }
    if (threads) {
      LocalWorld.of(ranks)
          .backend("cpu:host,cuda:nccl")
          .devices(Device::cuda)
          .run(rank -> measure(Distributed.world(), "threads", most, out));
      return 0;
    }
    return LocalLauncher.run(
        LaunchConfig.of(NcclBandwidth.class.getName(), ranks)
            .arguments(List.of(String.valueOf(most)))
            .classPath(System.getProperty("java.class.path"))
            .jvmArguments(List.of("-Xmx2g", "-Dorg.bytedeco.javacpp.maxphysicalbytes=0"))
            .prefixOutput(false)
            .output(out, System.err)
            .build());
  }

  /** A rank's process. */
  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK"));
    try (World world =
        Distributed.init(
            InitOptions.DEFAULT
                .withBackend("cpu:host,cuda:nccl")
                .withDeviceId(Device.cuda(local)))) {
      measure(world.group(), "processes", Long.parseLong(args[0]), System.out);
    }
  }

  private static void measure(ProcessGroup group, String ranks, long most, PrintStream out) {
    Device device = Device.cuda(Cuda.currentDevice());
    List<Rows> rows =
        group.rank() == 0
            ? List.of(new Rows("weft", out), new Rows("nccl", out))
            : List.of(new Rows("weft", null), new Rows("nccl", null));
    try (BareNccl bare = BareNccl.join(group, CudaStream.current(device.index()));
        TensorScope scope = TensorScope.open()) {
      // What is measured first would else pay for the compiler.
      NcclBandwidth bandwidth = new NcclBandwidth(group, bare, device, ranks, rows, most);
      for (int i = 0; i < WARM_UPS; i++) {
        bandwidth.all(KIB);
      }
      bandwidth.measures = true;
      for (long size : SIZES) {
        if (size <= most) {
          bandwidth.all(size);
        }
      }
    }
  }

  private void all(long size) {
    long count = Math.max(size / 4, 1);
    long part = Math.max(size / 4 / n, 1);
    long from = address(a);
    long to = address(b);
    Tensor whole = a.slice(0, 0, count);
    Tensor cut = a.slice(0, 0, part * n);
    Tensor filled = b.slice(0, 0, part * n);
    Tensor one = b.slice(0, 0, part);
    Tensor mine = a.slice(0, 0, part);
    Tensor got = b.slice(0, 0, count);
    int next = (group.rank() + 1) % n;
    int before = (group.rank() + n - 1) % n;
    compare(
        "all_reduce",
        size,
        2.0 * (n - 1) / n,
        () -> group.allReduce(whole, ReduceOp.SUM),
        () -> bare.allReduce(from, count));
    compare(
        "all_reduce_async",
        size,
        2.0 * (n - 1) / n,
        () -> group.allReduce(whole, ReduceOp.SUM, CollectiveOptions.ASYNC).await(),
        () -> bare.allReduce(from, count));
    compare(
        "all_gather",
        size,
        (n - 1.0) / n,
        () -> group.allGatherIntoTensor(filled, mine),
        () -> bare.allGather(from, to, part));
    compare(
        "reduce_scatter",
        size,
        (n - 1.0) / n,
        () -> group.reduceScatterTensor(one, cut, ReduceOp.SUM),
        () -> bare.reduceScatter(from, to, part));
    compare(
        "all_to_all",
        size,
        (n - 1.0) / n,
        () -> group.allToAllSingle(filled, cut, null, null),
        () -> bare.allToAll(from, to, part));
    compare(
        "broadcast", size, 1, () -> group.broadcast(whole, 0), () -> bare.broadcast(from, count));
    if (n > 1) {
      compare(
          "send_recv",
          size,
          1,
          () ->
              Distributed.batchIsendIrecv(
                      List.of(P2POp.isend(whole, next), P2POp.irecv(got, before)))
                  .forEach(Work::await),
          () -> bare.sendReceive(from, to, count));
    }
  }

  private static long address(Tensor t) {
    return ((StridedTensor) t).rawAddress();
  }

  private void compare(String name, long size, double factor, Runnable weft, Runnable nccl) {
    int calls = size <= 64 * KIB ? 300 : size <= 16 * MIB ? 60 : size <= 256 * MIB ? 12 : 4;
    List<Runnable> sides = List.of(weft, nccl);
    double[][] queued = new double[2][ROUNDS];
    double[][] waited = new double[2][ROUNDS];
    boolean waits = size <= WAITED_FOR;
    // Unmeasured rounds first, more where calls are so short that compiled code matters.
    int warm = size <= 64 * KIB ? 6 : 1;
    for (int round = -warm; round < ROUNDS; round++) {
      for (int side = 0; side < 2; side++) {
        double q = micros(sides.get(side), calls, false);
        double w = waits ? micros(sides.get(side), calls / 4, true) : 0;
        if (round >= 0) {
          queued[side][round] = q;
          waited[side][round] = w;
        }
      }
    }
    for (int side = 0; side < 2 && measures; side++) {
      Object[] params = {"ranks", ranks, "n", n, "bytes", size};
      double us = TrainGptBenchmark.median(queued[side]);
      Rows to = rows.get(side);
      to.addValue("nccl_" + name, us, "us", with(params, "queued"));
      to.addValue("nccl_" + name + "_busbw", size * factor / us / 1e3, "GB/s", params);
      if (waits) {
        to.addValue(
            "nccl_" + name, TrainGptBenchmark.median(waited[side]), "us", with(params, "waited"));
      }
    }
  }

  /** Microseconds a call, all ranks having come together first. */
  private double micros(Runnable call, int calls, boolean wait) {
    bare.allReduce(address(b), 1);
    Cuda.synchronize(device.index());
    CudaStream stream = CudaStream.current(device.index());
    long start = System.nanoTime();
    for (int i = 0; i < calls; i++) {
      call.run();
      if (wait) {
        stream.synchronize();
      }
    }
    Cuda.synchronize(device.index());
    return (System.nanoTime() - start) / 1e3 / calls;
  }

  private static Object[] with(Object[] params, String how) {
    Object[] more = Arrays.copyOf(params, params.length + 2);
    more[params.length] = "how";
    more[params.length + 1] = how;
    return more;
  }
}
