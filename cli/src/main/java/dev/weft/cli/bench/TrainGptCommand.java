package dev.weft.cli.bench;

import dev.weft.bench.ParallelGptBenchmark;
import dev.weft.bench.ParallelGptRun;
import dev.weft.bench.Rows;
import dev.weft.bench.TrainGptBenchmark;
import dev.weft.bench.TrainGptBenchmark.Precision;
import dev.weft.tensor.cuda.Cuda;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench train-gpt}. */
@Command(
    name = "train-gpt",
    description = "Training of a GPT on one device, or on a mesh of ranks, in tokens a second.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class TrainGptCommand implements Callable<Integer> {
  @Option(
      names = "--device",
      paramLabel = "cpu|cuda",
      description = "Where (default: ${DEFAULT-VALUE}).")
  private String device = "cuda";

  @Option(
      names = "--precisions",
      split = ",",
      paramLabel = "P",
      description = "Some of ${COMPLETION-CANDIDATES} (default: all).")
  private List<Precision> precisions = List.of(Precision.values());

  @Option(
      names = "--batch",
      paramLabel = "N",
      description = "Rows, for each data-parallel rank (default: ${DEFAULT-VALUE}).")
  private int batch = 8;

  @Option(names = "--tiny", description = "A tiny model, to see that it runs.")
  private boolean tiny;

  @Option(
      names = "--profile",
      description = "Device time by operator of the last step, too; one device only.")
  private boolean profile;

  @Option(
      names = "--mesh",
      split = ",",
      paramLabel = "dp=N,pp=M,tp=K",
      description = "Trains on ranks, a process each; a name left out counts as 1.")
  private Map<String, Integer> mesh = new LinkedHashMap<>();

  @Option(
      names = "--sharded",
      description = "With --mesh, data-parallel ranks share parameters and optimiser state, too.")
  private boolean sharded;

  @Option(
      names = "--microbatches",
      paramLabel = "N",
      description = "With --mesh and pp, a step's microbatches (default: 2 pp).")
  private int microbatches;

  @Option(names = "--in-process", description = "With --mesh, ranks are threads of this process.")
  private boolean inProcess;

  @Option(
      names = "--traces",
      paramLabel = "FOLDER",
      description = "With --mesh, a trace of each rank, of steps after those that count.")
  private @Nullable Path traces;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    if (!device.equals("cpu") && !device.equals("cuda")) {
      throw new IllegalArgumentException("--device '" + device + "'; expected cpu or cuda");
    }
    if (batch < 1) {
      throw new IllegalArgumentException("--batch is " + batch + "; expected 1 or more");
    }
    if (device.equals("cuda")) {
      Cuda.require();
    }
    return output.write(mesh.isEmpty() ? this::alone : this::onMesh);
  }

  private int alone(PrintStream out) {
    if (sharded || inProcess || microbatches != 0 || traces != null) {
      throw new IllegalArgumentException(
          "--sharded, --microbatches, --in-process and --traces go with --mesh, not given here");
    }
    TrainGptBenchmark.Options options =
        tiny
            ? TrainGptBenchmark.Options.tiny(device)
            : TrainGptBenchmark.Options.standard(device, batch);
    for (Precision precision : precisions) {
      double[] unused =
          new TrainGptBenchmark(new Rows(out), options, profile ? out : null).run(precision);
    }
    return 0;
  }

  private int onMesh(PrintStream out) {
    if (!Set.of("dp", "pp", "tp").containsAll(mesh.keySet())
        || mesh.values().stream().anyMatch(n -> n < 1)) {
      throw new IllegalArgumentException(
          "--mesh is " + mesh + "; expected sizes of 1 or more for some of dp, pp and tp");
    }
    int pp = mesh.getOrDefault("pp", 1);
    int parts = microbatches == 0 ? 2 * pp : microbatches;
    int rows = tiny ? TrainGptBenchmark.Options.tiny(device).batch() : batch;
    if (pp > 1 && (parts < 1 || rows % parts != 0)) {
      throw new IllegalArgumentException(
          "--microbatches is " + parts + "; expected a divisor of the " + rows + " rows of a rank");
    }
    ParallelGptBenchmark.Layout layout =
        new ParallelGptBenchmark.Layout(
            mesh.getOrDefault("dp", 1), pp, mesh.getOrDefault("tp", 1), sharded, parts);
    return ParallelGptRun.start(
        new ParallelGptRun.Request(device, tiny, batch, precisions, layout, traces),
        inProcess,
        out);
  }
}
