package dev.weft.bench;

import dev.weft.bench.CpuGptBenchmark.Model;
import dev.weft.bench.CpuGptBenchmark.Plan;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.World;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.examples.reference.Layout;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Starts the ranks of a {@link CpuGptBenchmark}, each a process or a thread, or is one. */
public final class CpuGptRun {
  private CpuGptRun() {}

  /** Layouts and threads of a rank, by the names that their rows have. */
  public enum Mode {
    /** One rank with one thread. */
    ONE_THREAD("1t", 1, 1, 1),
    /** One rank with two threads. */
    TWO_THREADS("2t", 1, 1, 2),
    /** Two tensor-parallel ranks. */
    TP2("tp2", 1, 2, 1),
    /** Two by two ranks. */
    DP2_TP2("dp2_tp2", 2, 2, 1);

    private final String label;
    private final int dp;
    private final int tp;
    private final int threads;

    Mode(String label, int dp, int tp, int threads) {
      this.label = label;
      this.dp = dp;
      this.tp = tp;
      this.threads = threads;
    }

    Layout layout() {
      return new Layout(dp, tp);
    }

    /** The mode of a name such as {@code tp2}. */
    public static Mode of(String name) {
      for (Mode m : values()) {
        if (m.label.equals(name)) {
          return m;
        }
      }
      throw new IllegalArgumentException(
          "mode '" + name + "'; expected one of 1t, 2t, tp2 and dp2_tp2");
    }
  }

  /** How ranks are held. */
  public enum Ranks {
    /** A process each. */
    PROCESSES,
    /** Threads of one process. */
    THREADS;

    String impl() {
      return "weft-" + name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * Runs all ranks in processes of their own and waits.
   *
   * @param warmUp steps before those that count
   * @param steps steps that count
   * @param out where the rows are printed
   * @return the exit code
   */
  public static int start(
      Model model, Mode mode, Ranks ranks, int warmUp, int steps, PrintStream out) {
    if (warmUp < 0 || steps < 1) {
      throw new IllegalArgumentException(
          "warm-up of " + warmUp + " and " + steps + " steps; expected 0 or more, and 1 or more");
    }
    return LocalLauncher.run(
        LaunchConfig.of(
                CpuGptRun.class.getName(), ranks == Ranks.THREADS ? 1 : mode.layout().ranks())
            .arguments(
                List.of(
                    model.name(),
                    mode.label,
                    ranks.name(),
                    String.valueOf(warmUp),
                    String.valueOf(steps)))
            .classPath(System.getProperty("java.class.path"))
            .jvmArguments(ManagementFactory.getRuntimeMXBean().getInputArguments())
            .environment(Map.of("OMP_NUM_THREADS", String.valueOf(mode.threads)))
            .prefixOutput(false)
            .output(out, System.err)
            .build());
  }

  /** A process: one rank, or all of them. */
  public static void main(String[] args) {
    Ranks ranks = Ranks.valueOf(args[2]);
    Mode mode = Mode.of(args[1]);
    Rows rows = new Rows(ranks.impl(), System.out);
    CpuGptBenchmark benchmark =
        new CpuGptBenchmark(
            Model.valueOf(args[0]),
            new Plan(args[1], mode.layout(), Integer.parseInt(args[3]), Integer.parseInt(args[4])));
    if (ranks == Ranks.THREADS) {
      LocalWorld.run(
          mode.layout().ranks(),
          rank -> {
            double unused = benchmark.run(rows);
          });
    } else {
      try (World world = Distributed.init()) {
        double unused = benchmark.run(rows);
      }
    }
  }
}
