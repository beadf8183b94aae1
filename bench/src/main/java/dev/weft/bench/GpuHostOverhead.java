package dev.weft.bench;

import static dev.weft.dtensor.Placements.partial;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.op.InPlace;
import java.util.Arrays;

/**
 * Host time of collectives and of small operations on one GPU with NCCL, world size 1.
 *
 * <p>Two times a row, each between two device synchronisations: {@code enqueue}, until the last
 * call of some has returned, and {@code total}, until the device is idle. One thread.
 */
public final class GpuHostOverhead {
  private static final int WARM_UP = 75;

  private static final int CALLS = 200;
  private static final int ROUNDS = 15;

  private final Rows rows;
  private final Device device;

  private GpuHostOverhead(Rows rows, Device device) {
    this.rows = rows;
    this.device = device;
  }

  /**
   * Measures on device 0 and prints.
   *
   * @param rows where the results go
   */
  public static void run(Rows rows) {
    Device device = Device.cuda(0);
    try (World world =
        dev.weft.c10d.Distributed.init(
            InitOptions.DEFAULT.withBackend("nccl").withDeviceId(device))) {
      new GpuHostOverhead(rows, device).run(world.group());
    }
  }

  private void run(ProcessGroup g) {
    int[] sizes = {16, 1 << 18, 1 << 24};
    for (int n : sizes) {
      Tensor x = ones(n);
      Tensor y = ones(n);
      guard("all_reduce", () -> g.allReduce(x, ReduceOp.SUM), "elements", n, "mode", "sync");
      guard(
          "all_reduce",
          () -> g.allReduce(x, ReduceOp.SUM, CollectiveOptions.ASYNC).await(),
          "elements",
          n,
          "mode",
          "async+wait");
      guard(
          "all_reduce",
          () -> g.allReduce(x, ReduceOp.SUM, CollectiveOptions.ASYNC),
          "elements",
          n,
          "mode",
          "async");
      guard(
          "functional_all_reduce",
          () -> FunctionalCollectives.waitTensor(FunctionalCollectives.allReduce(x, "sum", g)),
          "elements",
          n);
      guard("all_gather", () -> g.allGatherIntoTensor(y, x), "elements", n, "mode", "sync");
      guard(
          "reduce_scatter",
          () -> g.reduceScatterTensor(y, x, ReduceOp.SUM),
          "elements",
          n,
          "mode",
          "sync");
      guard("broadcast", () -> g.broadcast(x, 0), "elements", n, "mode", "sync");
    }
    guard("barrier", g::barrier);
    Autograd.noGrad(this::operators);
    Tensor p = matrix();
    Tensor w = matrix().requiresGrad(true);
    guard("plain_linear_fwd_bwd", () -> p.matmul(w).sum().backward(), "shape", "64x64");
    if (device.isCuda()) {
      CudaStream stream = CudaStream.fromPool(0, false);
      CudaEvent event = new CudaEvent(0, false);
      guard("event_record_wait", () -> stream.waitFor(event.record(CudaStream.current(0))));
    }
  }

  private void operators() {
    Tensor p = matrix();
    Tensor q = matrix();
    guard("plain_add", () -> p.add(q), "shape", "64x64");
    guard("plain_add_", () -> InPlace.add(p, 0.0), "shape", "64x64");
    guard("plain_matmul", () -> p.matmul(q), "shape", "64x64");
    guard(
        "plain_chain10",
        () -> {
          for (int i = 0; i < 10; i++) {
            Tensor unused = p.add(q);
          }
        },
        "shape",
        "64x64");
    DeviceMesh mesh = DeviceMesh.initDeviceMesh(device.type(), 1);
    DTensor r = local(mesh, replicate());
    DTensor s = local(mesh, shard(0));
    DTensor p0 = local(mesh, partial());
    guard("dtensor_add", () -> s.add(s), "shape", "64x64", "placements", "S0,S0");
    guard("dtensor_matmul", () -> s.matmul(r), "shape", "64x64", "placements", "S0,R");
    guard(
        "dtensor_redistribute",
        () -> s.redistribute(replicate()),
        "shape",
        "64x64",
        "placements",
        "S0->R");
    guard(
        "dtensor_redistribute",
        () -> r.redistribute(shard(0)),
        "shape",
        "64x64",
        "placements",
        "R->S0");
    guard(
        "dtensor_redistribute",
        () -> p0.redistribute(replicate()),
        "shape",
        "64x64",
        "placements",
        "P->R");
  }

  private DTensor local(DeviceMesh mesh, Placement placement) {
    return DTensor.fromLocal(matrix(), mesh, placement);
  }

  private Tensor matrix() {
    return ones(64 * 64).reshape(64, 64);
  }

  private Tensor ones(int n) {
    float[] values = new float[n];
    Arrays.fill(values, 1);
    return Tensor.of(values, n).to(device);
  }

  private void guard(String bench, Runnable body, Object... params) {
    try {
      row("gpu_host/" + bench, body, params);
    } catch (RuntimeException | Error e) {
      System.out.println("gpu_host/" + bench + " " + Arrays.toString(params) + " failed: " + e);
    }
  }

  private void row(String bench, Runnable body, Object... params) {
    // The compiler has to see it often enough first.
    for (int i = 0; i < WARM_UP; i++) {
      double unused = round(body)[0];
    }
    double[] enqueue = new double[ROUNDS];
    double[] total = new double[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      double[] micros = round(body);
      enqueue[i] = micros[0];
      total[i] = micros[1];
    }
    rows.add(bench, Timing.Result.of(enqueue), with(params, "enqueue"));
    rows.add(bench, Timing.Result.of(total), with(params, "total"));
  }

  private static Object[] with(Object[] params, String what) {
    Object[] more = Arrays.copyOf(params, params.length + 2);
    more[params.length] = "what";
    more[params.length + 1] = what;
    return more;
  }

  /** Microseconds a call until the last one has returned, and until the device is idle. */
  private double[] round(Runnable body) {
    synchronize();
    double[] micros = new double[2];
    long start = System.nanoTime();
    try (TensorScope scope = TensorScope.open()) {
      for (int c = 0; c < CALLS; c++) {
        body.run();
      }
      micros[0] = (System.nanoTime() - start) / 1e3 / CALLS;
    }
    synchronize();
    micros[1] = (System.nanoTime() - start) / 1e3 / CALLS;
    return micros;
  }

  private void synchronize() {
    if (device.isCuda()) {
      Cuda.synchronize(0);
    }
  }
}
