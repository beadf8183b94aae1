package dev.weft.examples.guide;

import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.profiler.CommDebug;
import dev.weft.profiler.Profiler;
import dev.weft.profiler.Schedule;
import dev.weft.profiler.TraceMerge;
import dev.weft.profiler.TraceSummary;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Reductions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The programs of {@code docs/guide/profiling.md}. */
final class ProfilingGuide {
  private ProfilingGuide() {}

  private static Linear linear(int out, int in) {
    return new Linear(Tensor.of(new float[out * in], out, in), null);
  }

  private static Module parallelMlp() {
    Module mlp = new Sequential(linear(16, 8), linear(8, 16));
    return Parallelize.parallelizeModule(
        mlp, initDeviceMesh("cpu", dim("tp", 2)), Map.of("0", colwise(), "1", rowwise()));
  }

  private static void train(Module mlp) {
    try (TensorScope step = TensorScope.open()) {
      Tensor x = Tensor.of(new float[4 * 8], 4, 8);
      x.requiresGrad(true);
      Reductions.sum(mlp.call(x)).backward();
      mlp.zeroGrad();
    }
  }

  private static void onRankZero(Object text) {
    if (Distributed.rank() == 0) {
      System.out.print(text);
    }
  }

  @Ranks(2)
  static void counting() {
    Module mlp = parallelMlp();
    try (CommDebug comm = CommDebug.of(mlp)) {
      train(mlp);
      onRankZero(comm);
      onRankZero(comm.counts() + "\n");
    }
  }

  @Ranks(2)
  static void recording() throws IOException {
    Path traces = Path.of(System.getProperty("java.io.tmpdir"), "traces-of-the-guide");
    Module mlp = parallelMlp();
    try (Profiler profiler = Profiler.start(traces, Schedule.once(2, 1, 3))) {
      for (int step = 0; step < 6; step++) {
        train(mlp);
        profiler.step();
      }
    }
    Distributed.world().barrier();
    TraceSummary all = TraceMerge.merge(List.of(traces), null);
    for (TraceSummary.GroupTraffic g : all.traffic()) {
      onRankZero(
          "%d %s over %d ranks, %d B\n".formatted(g.count(), g.operation(), g.size(), g.bytes()));
    }
    Distributed.world().barrier();
    Files.delete(traces.resolve("rank" + Distributed.rank() + ".trace.json.gz"));
  }
}
