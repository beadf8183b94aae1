package dev.weft.examples.trainer;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.World;
import java.io.PrintStream;
import java.util.List;
import picocli.CommandLine;

/**
 * Trains a small language model. One rank a process, restarted where a rank is lost, or as threads:
 *
 * <pre>{@code
 * weft run --nproc-per-node 8 --max-restarts 3 dev.weft.examples.trainer.Train \
 *     --mesh dp=2,pp=2,tp=2 --microbatches 2 --out runs/first --checkpoint-every 10
 * weft run dev.weft.examples.trainer.Train --in-process --mesh dp=2,pp=2,tp=2
 * }</pre>
 */
public final class Train {
  private Train() {}

  /** Runs one rank of a launched world, or a world of threads; {@code --help} tells the options. */
  public static void main(String[] args) {
    TrainOptions options = new TrainOptions();
    CommandLine command = TrainOptions.command(options);
    CommandLine.ParseResult parsed = TrainOptions.parse(command, args);
    if (parsed.isUsageHelpRequested()) {
      command.usage(System.out);
      return;
    }
    if (options.inProcess()) {
      String world = System.getenv("WORLD_SIZE");
      if (world != null && !world.equals("1")) {
        throw new IllegalArgumentException(
            "--in-process in a world of "
                + world
                + " processes; expected one, in which the ranks are threads");
      }
      List<LossRow> unused = inProcess(options, System.out);
      return;
    }
    try (World world = Distributed.init()) {
      List<LossRow> unused = run(options, System.out);
    }
  }

  /**
   * Trains on threads of this process, as many as the mesh says.
   *
   * @param out gets what rank 0 says
   * @return what the steps gave
   */
  public static List<LossRow> inProcess(TrainOptions options, PrintStream out) {
    options.check(0);
    if (options.onGpu()) {
      throw new IllegalArgumentException(
          "--in-process with --device cuda; expected cpu: threads would share one GPU");
    }
    return LocalWorld.call(options.dims(0).ranks(), rank -> run(options, out)).get(0);
  }

  /**
   * Trains on the calling rank of a world, from the newest checkpoint if there is one.
   *
   * @param out gets what rank 0 says
   * @return what the steps gave, the same on all ranks but for the time
   */
  public static List<LossRow> run(TrainOptions options, PrintStream out) {
    options.check(Distributed.worldSize());
    try (TrainingRun run = new TrainingRun(options, out)) {
      return run.train();
    }
  }
}
