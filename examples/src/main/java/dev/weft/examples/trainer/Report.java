package dev.weft.examples.trainer;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A page about a run that stands alone: figures, plots, settings; no resources from elsewhere. It
 * follows the reader's choice of light or dark. One thread.
 */
final class Report {
  // Runs as long as this get a smoothed loss, a mean over this part of the steps on both sides.
  private static final int SMOOTHED_FROM = 100;
  private static final int SMOOTHED_PART = 50;

  private final String title;
  private final String subtitle;
  private final List<LossRow> rows;
  private final Map<String, String> settings;
  private final StringBuilder sections = new StringBuilder();
  private final StringBuilder morePlots = new StringBuilder();
  private final double clip;
  private final long steps;

  /**
   * A page.
   *
   * @param rows of all steps until now; at least one
   * @param settings shown as a list
   * @param clip the bound of the gradient's norm
   * @param steps of the whole run
   */
  Report(
      String title,
      String subtitle,
      List<LossRow> rows,
      Map<String, String> settings,
      double clip,
      long steps) {
    this.title = title;
    this.subtitle = subtitle;
    this.rows = rows;
    this.settings = settings;
    this.clip = clip;
    this.steps = steps;
  }

  /** Adds a text of fixed width under a heading. */
  Report text(String heading, String text) {
    return section(heading, format("<pre>%s</pre>", escape(text)));
  }

  /** Adds a section under a heading; its content is HTML. */
  Report section(String heading, String html) {
    return html(format("<section><h2>%s</h2>%s</section>%n", escape(heading), html));
  }

  /** Adds HTML after the sections that are there. */
  Report html(String html) {
    sections.append(html);
    return this;
  }

  /** Adds a plot after those of the losses. */
  Report plot(Plot plot) {
    morePlots.append(plot.html());
    return this;
  }

  /** Writes the page; a reader never sees half of it. */
  void write(Path file) {
    try {
      Path part = file.resolveSibling(file.getFileName() + ".part");
      Files.writeString(part, html());
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new UncheckedIOException("the report cannot be written to " + file + ": " + e, e);
    }
  }

  String html() {
    return template()
        .replace("{{title}}", escape(title))
        .replace("{{subtitle}}", escape(subtitle))
        .replace("{{figures}}", figures())
        .replace("{{plots}}", plots())
        .replace("{{details}}", details());
  }

  private static String template() {
    try (InputStream in = Report.class.getResourceAsStream("report.html")) {
      byte[] bytes = Objects.requireNonNull(in, "report.html is missing").readAllBytes();
      return new String(bytes, StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String figures() {
    LossRow last = rows.get(rows.size() - 1);
    double[] rates = rows.stream().mapToDouble(LossRow::tokensPerSecond).sorted().toArray();
    StringBuilder out = new StringBuilder();
    figure(out, "Loss", format("%.4f", last.loss()), "nats per token, last step");
    Double heldOut = lastEvalLoss();
    if (heldOut != null) {
      String perplexity = format("perplexity %.1f", Math.exp(heldOut));
      figure(out, "Held out", format("%.4f", heldOut), perplexity);
    }
    figure(out, "Steps", format("%,d", last.step()), format("of %,d", steps));
    figure(out, "Tokens", format("%,d", last.tokens()), "seen in training");
    figure(out, "Tokens/s", format("%,.0f", rates[rates.length / 2]), "median, all ranks");
    return out.toString();
  }

  private @Nullable Double lastEvalLoss() {
    Double last = null;
    for (LossRow r : rows) {
      last = r.evalLoss() == null ? last : r.evalLoss();
    }
    return last;
  }

  private static void figure(StringBuilder out, String name, String value, String note) {
    out.append(
        format(
            "<div class=\"figure\"><dt>%s</dt><dd>%s</dd><dd class=\"note\">%s</dd></div>%n",
            name, value, note));
  }

  private String plots() {
    double[] x = rows.stream().mapToDouble(LossRow::step).toArray();
    double[] loss = rows.stream().mapToDouble(LossRow::loss).toArray();
    List<LossRow> evaluated = rows.stream().filter(r -> r.evalLoss() != null).toList();
    Plot losses = new Plot("Loss", "%.3f");
    if (rows.size() >= SMOOTHED_FROM) {
      losses.line("training", "faint", false, x, loss);
      losses.line("smoothed", "main", false, x, smoothed(loss));
    } else {
      losses.line("training", "main", false, x, loss);
    }
    if (!evaluated.isEmpty()) {
      losses.line(
          "held out",
          "second",
          true,
          evaluated.stream().mapToDouble(LossRow::step).toArray(),
          evaluated.stream().mapToDouble(r -> Objects.requireNonNull(r.evalLoss())).toArray());
    }
    return losses.html()
        + new Plot("Gradient norm before clipping", "%.2f")
            .line("norm", "main", false, x, column(LossRow::gradNorm))
            .level("clipped at " + clip, clip)
            .fromZero()
            .html()
        + new Plot("Learning rate", "%.1e")
            .line("rate", "main", false, x, column(LossRow::learningRate))
            .fromZero()
            .html()
        + new Plot("Tokens per second", "%,.0f")
            .line("all ranks", "main", false, x, column(LossRow::tokensPerSecond))
            .fromZero()
            .html()
        + morePlots;
  }

  private double[] column(java.util.function.ToDoubleFunction<LossRow> of) {
    return rows.stream().mapToDouble(of).toArray();
  }

  /** The mean of neighbours, as many on both sides, fewer near the ends. */
  private static double[] smoothed(double[] values) {
    double[] sums = new double[values.length + 1];
    for (int i = 0; i < values.length; i++) {
      sums[i + 1] = sums[i] + values[i];
    }
    double[] out = new double[values.length];
    for (int i = 0; i < values.length; i++) {
      int reach = Math.min(values.length / SMOOTHED_PART, Math.min(i, values.length - 1 - i));
      out[i] = (sums[i + reach + 1] - sums[i - reach]) / (2 * reach + 1);
    }
    return out;
  }

  private String details() {
    StringBuilder out = new StringBuilder();
    out.append(sections);
    out.append("<section><h2>Settings</h2><dl class=\"settings\">");
    settings.forEach(
        (name, value) ->
            out.append(
                format(
                    "<div><dt>%s</dt><dd>%s</dd></div>%n",
                    escape(name.replaceFirst("^--", "")), escape(value))));
    return out.append("</dl></section>").toString();
  }

  static String escape(String text) {
    return text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\"", "&quot;");
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
