package dev.weft.examples.reference;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;

/** The recorded losses and gradient norms of a layout. */
public final class GoldenRun {
  /** Relative tolerance of losses and gradient norms at every step. */
  public static final double TOLERANCE = 5e-6;

  private final String layout;
  private final JsonNode variant;

  private GoldenRun(String layout, JsonNode variant) {
    this.layout = layout;
    this.variant = variant;
  }

  /** The run of {@code model} ("gpt" or "mlp") for dp and tp; "single" where there is none. */
  public static GoldenRun of(String model, int dp, int tp) {
    JsonNode variants = Resources.gzippedTree("golden_" + model + ".json.gz").get("variants");
    String name =
        dp == 1 && tp == 1
            ? "single"
            : dp == 1 ? "tp" + tp : tp == 1 ? "dp" + dp : "dp" + dp + "_tp" + tp;
    if (!variants.has(name)) {
      name = "single";
    }
    return new GoldenRun(name, variants.get(name));
  }

  /**
   * The run of {@code model} under a recorded layout's name, such as {@code fsdp2_tp2} or {@code
   * 1f1b}.
   *
   * @throws IllegalArgumentException if it is not recorded
   */
  public static GoldenRun named(String model, String layout) {
    JsonNode variants = Resources.gzippedTree("golden_" + model + ".json.gz").get("variants");
    if (!variants.has(layout)) {
      throw new IllegalArgumentException("there is no recorded run '" + layout + "' of " + model);
    }
    return new GoldenRun(layout, variants.get(layout));
  }

  /** The layout's name. */
  public String layout() {
    return layout;
  }

  /** The recorded loss of a step. */
  public double loss(int step) {
    return variant.get("loss").get(step).asDouble();
  }

  /** The recorded norm of the gradient before clipping. */
  public double gradNorm(int step) {
    return variant.get("grad_norm").get(step).asDouble();
  }

  /** The recorded sum of a parameter's final values. */
  public double sum(String parameter) {
    return variant.get("params").get(parameter).get("sum").asDouble();
  }

  /** The recorded sum of the squares of a parameter's final values. */
  public double sumOfSquares(String parameter) {
    return variant.get("params").get(parameter).get("sumsq").asDouble();
  }

  /** What is wrong with a step's values, or an empty text. */
  public String difference(int step, double loss, double gradNorm) {
    return difference("loss", step, loss, loss(step))
        + difference("gradient norm", step, gradNorm, gradNorm(step));
  }

  private String difference(String what, int step, double got, double want) {
    double relative = Math.abs(got - want) / Math.abs(want);
    return relative <= TOLERANCE
        ? ""
        : String.format(
            Locale.ROOT,
            "step %d: %s %.8f, %s run has %.8f (relative difference %.1e); ",
            step,
            what,
            got,
            layout,
            want,
            relative);
  }
}
