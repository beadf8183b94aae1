package dev.weft.bench;

import dev.weft.bench.ParallelGptBenchmark.Layout;
import dev.weft.bench.TrainGptBenchmark.Options;
import dev.weft.bench.TrainGptBenchmark.Precision;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.World;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Starts the ranks of a {@link ParallelGptBenchmark}, or is one; the last rank prints. */
public final class ParallelGptRun {
  private ParallelGptRun() {}

  /**
   * What to measure.
   *
   * @param device {@code cpu} or {@code cuda}
   * @param tiny whether the model is a tiny one, to see that it runs
   * @param batch rows of each data-parallel rank
   * @param precisions one after the other
   * @param layout how ranks share the work
   * @param traces a folder for the ranks' traces, or null
   */
  public record Request(
      String device,
      boolean tiny,
      int batch,
      List<Precision> precisions,
      Layout layout,
      @Nullable Path traces) {
    private String[] toArguments() {
      return new String[] {
        device,
        String.valueOf(tiny),
        String.valueOf(batch),
        precisions.stream().map(Precision::name).collect(Collectors.joining(",")),
        String.valueOf(layout.dp()),
        String.valueOf(layout.pp()),
        String.valueOf(layout.tp()),
        String.valueOf(layout.sharded()),
        String.valueOf(layout.microbatches()),
        traces == null ? "" : traces.toAbsolutePath().toString()
      };
    }

    private static Request of(String[] a) {
      return new Request(
          a[0],
          Boolean.parseBoolean(a[1]),
          Integer.parseInt(a[2]),
          Arrays.stream(a[3].split(",", -1)).map(Precision::valueOf).toList(),
          new Layout(
              Integer.parseInt(a[4]),
              Integer.parseInt(a[5]),
              Integer.parseInt(a[6]),
              Boolean.parseBoolean(a[7]),
              Integer.parseInt(a[8])),
          a[9].isEmpty() ? null : Path.of(a[9]));
    }
  }

  /**
   * Runs all ranks and waits.
   *
   * @param threads whether ranks are threads of this JVM, not processes
   * @return the exit code
   */
  public static int start(Request request, boolean threads, PrintStream out) {
    int ranks = request.layout().ranks();
    boolean cuda = request.device().equals("cuda");
    if (threads) {
      LocalWorld world = LocalWorld.of(ranks);
      if (cuda) {
        if (ranks > Cuda.deviceCount()) {
          throw new IllegalArgumentException(
              "--in-process with "
                  + ranks
                  + " ranks; expected at most the "
                  + Cuda.deviceCount()
                  + " GPUs here");
        }
        world = world.backend("cpu:host,cuda:nccl").devices(Device::cuda);
      }
      world.run(rank -> run(request, out));
      return 0;
    }
    return LocalLauncher.run(
        LaunchConfig.of(ParallelGptRun.class.getName(), ranks)
            .arguments(List.of(request.toArguments()))
            .classPath(System.getProperty("java.class.path"))
            .jvmArguments(List.of("-Xmx4g", "-Dorg.bytedeco.javacpp.maxphysicalbytes=0"))
            .prefixOutput(false)
            .shareGpus(cuda && ranks > Cuda.deviceCount())
            .output(out, System.err)
            .build());
  }

  /** One rank's process. */
  public static void main(String[] args) {
    try (World world = Distributed.init()) {
      run(Request.of(args), System.out);
    }
  }

  private static void run(Request request, PrintStream out) {
    Options options =
        request.tiny
            ? Options.tiny(request.device)
            : Options.standard(request.device, request.batch);
    // The last rank knows the loss where there are stages.
    boolean prints = Distributed.rank() == Distributed.worldSize() - 1;
    Rows rows = new Rows(prints ? out : null);
    for (Precision precision : request.precisions) {
      double[] unused =
          new ParallelGptBenchmark(rows, options, request.layout, request.traces).run(precision);
    }
  }
}
