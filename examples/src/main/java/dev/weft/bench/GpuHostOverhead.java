package dev.weft.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.c10d.nccl.Nccl;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Partial;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Replicate;
import dev.weft.dtensor.Shard;
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
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Host time of collectives and of small operations on one GPU with NCCL, world size 1.
 *
 * <p>Two times a row, each between two device synchronisations: {@code enqueue}, until the last call
 * of some has returned, and {@code total}, until the device is idle. One thread.
 */
public final class GpuHostOverhead {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Device device;
  private final int calls;
  private final int rounds;

  private GpuHostOverhead(Device device, int calls, int rounds) {
    this.device = device;
    this.calls = calls;
    this.rounds = rounds;
  }

  /** Arguments: {@code --cpu} for a dry run, {@code --calls N}, {@code --rounds N}. */
  public static void main(String[] args) throws JsonProcessingException {
    int calls = 200;
    int rounds = 15;
    boolean cpu = false;
    for (int i = 0; i < args.length; i++) {
      switch (args[i]) {
        case "--cpu" -> cpu = true;
        case "--calls" -> calls = Integer.parseInt(args[++i]);
        case "--rounds" -> rounds = Integer.parseInt(args[++i]);
        default -> throw new IllegalArgumentException("argument " + args[i] + " is unknown");
      }
    }
    Device device = cpu ? Device.CPU : Device.cuda(0);
    InitOptions options = InitOptions.DEFAULT.withBackend(cpu ? "host" : "nccl");
    try (World world =
        dev.weft.c10d.Distributed.init(cpu ? options : options.withDeviceId(device))) {
      Map<String, Object> info = new LinkedHashMap<>();
      info.put("java", System.getProperty("java.version"));
      info.put("device", cpu ? "cpu" : Cuda.properties(0).name());
      info.put("nccl", Nccl.version());
      System.out.println(JSON.writeValueAsString(Map.of("info", info)));
      new GpuHostOverhead(device, calls, rounds).run(world.group());
    }
  }

  private void run(ProcessGroup g) {
    int[] sizes = device.isCpu() ? new int[] {16, 1 << 18} : new int[] {16, 1 << 18, 1 << 24};
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
    DTensor r = local(mesh, new Replicate());
    DTensor s = local(mesh, new Shard(0));
    DTensor partial = local(mesh, Partial.SUM);
    guard("dtensor_add", () -> s.add(s), "shape", "64x64", "placements", "S0,S0");
    guard("dtensor_matmul", () -> s.matmul(r), "shape", "64x64", "placements", "S0,R");
    guard(
        "dtensor_redistribute",
        () -> s.redistribute(new Replicate()),
        "shape",
        "64x64",
        "placements",
        "S0->R");
    guard(
        "dtensor_redistribute",
        () -> r.redistribute(new Shard(0)),
        "shape",
        "64x64",
        "placements",
        "R->S0");
    guard(
        "dtensor_redistribute",
        () -> partial.redistribute(new Replicate()),
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

  private void guard(String bench, Runnable body, Object... parameters) {
    Map<String, Object> params = new LinkedHashMap<>();
    for (int i = 0; i < parameters.length; i += 2) {
      params.put((String) parameters[i], parameters[i + 1]);
    }
    try {
      row(bench, params, body);
    } catch (RuntimeException | Error e) {
      print(bench, params, Map.of("error", String.valueOf(e)));
    }
  }

  private void row(String bench, Map<String, Object> params, Runnable body) {
    // The compiler has to see it often enough first.
    for (int i = 0; i < 25; i++) {
      repeat(body);
      synchronize();
    }
    double[] enqueue = new double[rounds];
    double[] total = new double[rounds];
    for (int i = 0; i < rounds; i++) {
      synchronize();
      long start = System.nanoTime();
      try (TensorScope scope = TensorScope.open()) {
        for (int c = 0; c < calls; c++) {
          body.run();
        }
        enqueue[i] = (System.nanoTime() - start) / 1e3 / calls;
      }
      synchronize();
      total[i] = (System.nanoTime() - start) / 1e3 / calls;
    }
    print(bench, params, "enqueue", enqueue);
    print(bench, params, "total", total);
  }

  private void repeat(Runnable body) {
    try (TensorScope scope = TensorScope.open()) {
      for (int c = 0; c < calls; c++) {
        body.run();
      }
    }
  }

  private void synchronize() {
    if (device.isCuda()) {
      Cuda.synchronize(0);
    }
  }

  private static void print(
      String bench, Map<String, Object> params, String what, double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    for (String stat : new String[] {"best", "median"}) {
      double value = stat.equals("best") ? sorted[0] : sorted[sorted.length / 2];
      Map<String, Object> all = new LinkedHashMap<>(params);
      all.put("what", what);
      all.put("stat", stat);
      Map<String, Object> rest = new LinkedHashMap<>();
      rest.put("value", Math.round(value * 1e3) / 1e3);
      rest.put("unit", "us");
      print(bench, all, rest);
    }
  }

  private static void print(String bench, Map<String, Object> params, Map<String, Object> rest) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("bench", "gpu_host/" + bench);
    line.put("impl", "weft");
    line.put("params", params);
    line.putAll(rest);
    try {
      System.out.println(JSON.writeValueAsString(line));
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}
