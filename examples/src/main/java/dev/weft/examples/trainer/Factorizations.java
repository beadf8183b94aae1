package dev.weft.examples.trainer;

import dev.weft.examples.reference.GoldenRun;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Trains the same model on every mesh of so many in-process ranks, and prints how far losses and
 * gradient norms are from those of one rank, and of the recorded run of the reference:
 *
 * <pre>{@code
 * weft run dev.weft.examples.trainer.Factorizations 8
 * }</pre>
 */
public final class Factorizations {
  private static final PrintStream SILENT = new PrintStream(OutputStream.nullOutputStream());

  /** The reference's configuration: 2 layers, 4 heads. */
  static final List<String> REFERENCE = List.of("--order", "random", "--held-out", "0");

  /**
   * A deeper one with more heads, so that 8 ranks can share layers or heads alone. At the
   * reference's learning rate it meets a batch whose gradient float32 gives to five digits only, in
   * whatever order it is summed.
   */
  static final List<String> DEEP =
      List.of(
          "--layers", "8", "--heads", "8", "--lr", "1e-3", "--order", "random", "--held-out", "0");

  private Factorizations() {}

  /** Prints the table; the argument is the number of ranks, 8 unless given. */
  public static void main(String[] args) {
    int ranks = args.length > 0 ? Integer.parseInt(args[0]) : 8;
    GoldenRun golden = GoldenRun.named("gpt", "single");
    PrintStream out = System.out;
    boolean good = true;
    out.println(
        "| model | mesh | loss, last step | loss to 1 rank | norm to 1 rank | to recorded |");
    out.println("| --- | --- | --- | --- | --- | --- |");
    for (List<String> model : List.of(REFERENCE, DEEP)) {
      List<LossRow> alone = train(model, List.of());
      for (List<String> mesh : meshes(ranks)) {
        List<String> all = new ArrayList<>(model);
        all.addAll(mesh);
        try {
          TrainOptions.parse(all.toArray(String[]::new)).check(0);
        } catch (IllegalArgumentException e) {
          continue; // more stages than layers, or more ranks than heads
        }
        List<LossRow> rows = train(model, mesh);
        Difference to = Difference.of(rows, alone);
        double recorded = model.equals(REFERENCE) ? toRecorded(rows, golden) : 0;
        good &= Math.max(Math.max(to.loss, to.gradNorm), recorded) <= GoldenRun.TOLERANCE;
        out.printf(
            Locale.ROOT,
            "| %s | %s | %.7f | %.1e | %.1e | %s |%n",
            model.equals(REFERENCE) ? "reference" : "deep",
            String.join(" ", mesh.subList(1, mesh.size())),
            rows.get(rows.size() - 1).loss(),
            to.loss,
            to.gradNorm,
            model.equals(REFERENCE) ? String.format(Locale.ROOT, "%.1e", recorded) : "");
      }
    }
    out.println((good ? "all within " : "NOT all within ") + GoldenRun.TOLERANCE);
    if (!good) {
      throw new IllegalStateException("a mesh differs by more than " + GoldenRun.TOLERANCE);
    }
  }

  /**
   * The largest relative differences over all steps.
   *
   * @param loss of the loss
   * @param gradNorm of the gradient's norm
   */
  record Difference(double loss, double gradNorm) {
    static Difference of(List<LossRow> rows, List<LossRow> expected) {
      if (rows.size() != expected.size()) {
        throw new IllegalArgumentException(
            rows.size() + " steps; expected " + expected.size() + " to compare with");
      }
      double loss = 0;
      double norm = 0;
      for (int i = 0; i < rows.size(); i++) {
        loss = Math.max(loss, relative(rows.get(i).loss(), expected.get(i).loss()));
        norm = Math.max(norm, relative(rows.get(i).gradNorm(), expected.get(i).gradNorm()));
      }
      return new Difference(loss, norm);
    }
  }

  private static double relative(double got, double want) {
    return Math.abs(got - want) / Math.abs(want);
  }

  /** The largest relative difference of losses and norms to a recorded run. */
  static double toRecorded(List<LossRow> rows, GoldenRun golden) {
    double worst = 0;
    for (int i = 0; i < rows.size(); i++) {
      worst = Math.max(worst, relative(rows.get(i).loss(), golden.loss(i)));
      worst = Math.max(worst, relative(rows.get(i).gradNorm(), golden.gradNorm(i)));
    }
    return worst;
  }

  /** Trains on threads. */
  static List<LossRow> train(List<String> model, List<String> mesh) {
    List<String> all = new ArrayList<>(model);
    all.addAll(mesh);
    return Train.inProcess(TrainOptions.parse(all.toArray(String[]::new)), SILENT);
  }

  /** Arguments of all meshes: each way to write the ranks as a product, and ways to run it. */
  static List<List<String>> meshes(int ranks) {
    List<List<String>> all = new ArrayList<>();
    for (int tp = 1; tp <= ranks; tp++) {
      for (int pp = 1; pp <= ranks; pp++) {
        for (int fsdp = 1; fsdp <= ranks; fsdp++) {
          if (ranks % (tp * pp * fsdp) != 0) {
            continue;
          }
          String mesh = new ParallelDims(ranks / (tp * pp * fsdp), fsdp, pp, tp).toString();
          all.add(List.of("--mesh", mesh));
          if (tp > 1) {
            all.add(List.of("--mesh", mesh, "--sequence-parallel"));
          }
          if (pp > 1) {
            all.add(List.of("--mesh", mesh, "--schedule", "gpipe"));
            all.add(List.of("--mesh", mesh, "--schedule", "interleaved", "--stages-per-rank", "2"));
          }
        }
      }
    }
    return all;
  }
}
