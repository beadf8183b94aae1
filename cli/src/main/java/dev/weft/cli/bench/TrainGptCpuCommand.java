package dev.weft.cli.bench;

import dev.weft.bench.CpuGptBenchmark.Model;
import dev.weft.bench.CpuGptRun;
import dev.weft.bench.CpuGptRun.Mode;
import dev.weft.bench.CpuGptRun.Ranks;
import java.io.PrintStream;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench train-gpt-cpu}. */
@Command(
    name = "train-gpt-cpu",
    description =
        "Training of the reference decoder on CPU, alone and on meshes, in tokens a second.",
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class TrainGptCpuCommand implements Callable<Integer> {
  @Option(
      names = "--models",
      split = ",",
      paramLabel = "M",
      description = "Some of ${COMPLETION-CANDIDATES} (default: all).")
  private List<Model> models = List.of(Model.values());

  @Option(
      names = "--modes",
      split = ",",
      paramLabel = "M",
      description = "Some of 1t, 2t, tp2 and dp2_tp2 (default: all).")
  private List<String> modes = List.of("1t", "2t", "tp2", "dp2_tp2");

  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "HOW",
      description = "Of meshes: some of ${COMPLETION-CANDIDATES} (default: all).")
  private List<Ranks> ranks = List.of(Ranks.values());

  @Option(
      names = "--warm-up",
      paramLabel = "N",
      description = "Steps before those that count (default: 400 of B, 40 of Bp).")
  private int warmUp = -1;

  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "Steps that count (default: ${DEFAULT-VALUE}).")
  private int steps = 20;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    if (steps < 1) {
      throw new IllegalArgumentException("--steps is " + steps + "; expected 1 or more");
    }
    List<Mode> all = modes.stream().map(Mode::of).toList();
    return output.write(
        out -> {
          for (Model model : models) {
            for (Mode mode : all) {
              int code = run(model, mode, out);
              if (code != 0) {
                return code;
              }
            }
          }
          return 0;
        });
  }

  private int run(Model model, Mode mode, PrintStream out) {
    int usual = model == Model.B ? 400 : 40;
    int before = warmUp < 0 ? usual : warmUp;
    boolean alone = mode == Mode.ONE_THREAD || mode == Mode.TWO_THREADS;
    for (Ranks how : alone ? List.of(Ranks.PROCESSES) : ranks) {
      int code = CpuGptRun.start(model, mode, how, before, steps, out);
      if (code != 0) {
        return code;
      }
    }
    return 0;
  }
}
