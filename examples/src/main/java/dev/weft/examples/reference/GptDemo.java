package dev.weft.examples.reference;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.World;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The demo's program for one rank; {@link #main} is what the launcher starts. */
public final class GptDemo {
  private GptDemo() {}

  /**
   * What to do.
   *
   * @param layout the mesh
   * @param deviceType {@code cpu} or {@code cuda}
   * @param steps training steps
   * @param check whether to compare each step with the recorded run
   * @param text a file to train on, or null for the text that comes with the examples
   * @param live whether progress overwrites one line (a terminal)
   */
  public record Options(
      Layout layout,
      String deviceType,
      int steps,
      boolean check,
      @Nullable Path text,
      boolean live) {
    /** As arguments of {@link GptDemo#main}. */
    public String[] toArguments() {
      return new String[] {
        layout.toString(),
        deviceType,
        String.valueOf(steps),
        String.valueOf(check),
        text == null ? "" : text.toString(),
        String.valueOf(live)
      };
    }

    private static Options of(String[] args) {
      return new Options(
          Layout.parse(args[0]),
          args[1],
          Integer.parseInt(args[2]),
          Boolean.parseBoolean(args[3]),
          args[4].isEmpty() ? null : Path.of(args[4]),
          Boolean.parseBoolean(args[5]));
    }
  }

  /** Runs as one process of a launched world. */
  public static void main(String[] args) throws IOException {
    boolean good;
    try (World world = Distributed.init()) {
      good = run(Options.of(args), System.out);
    }
    if (!good) {
      System.exit(1);
    }
  }

  /**
   * Trains on the calling rank; rank 0 prints.
   *
   * @return false when a check failed
   */
  public static boolean run(Options options, PrintStream out) throws IOException {
    boolean prints = Distributed.rank() == 0;
    GptConfig config = GptConfig.reference();
    int steps = options.steps();
    GoldenRun golden = GoldenRun.of("gpt", options.layout().dp(), options.layout().tp());
    Path file = options.text();
    byte[] text = file == null ? TextBatches.corpus() : Files.readAllBytes(file);
    // The learning rate's schedule is that of the reference for its number of steps.
    GptConfig scheduled = steps <= config.steps() ? config : config.withSteps(steps);
    try (GptTraining training =
        new GptTraining(scheduled, options.layout(), options.deviceType(), text)) {
      boolean good = true;
      double first = 0;
      double last = 0;
      long started = System.nanoTime();
      for (int step = 0; step < steps; step++) {
        GptTraining.Step s = training.step(step);
        first = step == 0 ? s.loss() : first;
        last = s.loss();
        String difference = options.check() ? golden.difference(step, s.loss(), s.gradNorm()) : "";
        good &= difference.isEmpty();
        if (prints) {
          double rate = (step + 1) * training.tokensPerStep() / seconds(started);
          progress(options, out, step, steps, s, rate);
          if (!difference.isEmpty()) {
            out.println("\ncheck: " + difference);
          }
        }
      }
      double rate = steps * (double) training.tokensPerStep() / seconds(started);
      String sample = training.sample("And God said", 160, 0.5);
      if (prints) {
        out.println();
        out.println("sample: " + sample.replaceAll("[^\\x20-\\x7e]", " "));
        if (options.check()) {
          out.println(
              good
                  ? "check: every step agrees with the recorded run '" + golden.layout() + "'"
                  : "check: FAILED against the recorded run '" + golden.layout() + "'");
        }
        out.printf(
            Locale.ROOT,
            "demo: dp=%d tp=%d steps=%d loss=%.4f->%.4f tokens/s=%.0f%n",
            options.layout().dp(),
            options.layout().tp(),
            steps,
            first,
            last,
            rate);
        out.flush();
      }
      return good;
    }
  }

  private static double seconds(long since) {
    return (System.nanoTime() - since) * 1e-9;
  }

  private static void progress(
      Options options, PrintStream out, int step, int steps, GptTraining.Step s, double rate) {
    String line =
        String.format(
            Locale.ROOT,
            "step %d/%d  loss %.4f  grad norm %.3f  %.0f tokens/s",
            step + 1,
            steps,
            s.loss(),
            s.gradNorm(),
            rate);
    if (options.live()) {
      out.print(line + "  \r"); // a line to be overwritten
      out.flush();
    } else if ((step + 1) % 5 == 0 || step == 0) {
      out.println(line);
    }
  }
}
