package dev.weft.examples.trainer;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * A plot over steps, or over another count, as an HTML figure: lines in an SVG that stretches with
 * the page, and labels as text, whose size stays. Immutable but for {@link #line}; one thread.
 */
final class Plot {
  // A page needs no more points than it has pixels.
  private static final int MOST_POINTS = 800;
  private static final int TICKS = 5;

  private final String title;
  private final String format;
  private final List<Line> lines = new ArrayList<>();
  private @Nullable Double level;
  private String levelName = "";
  private boolean fromZero;
  private String unit = "step";

  /** One line; the class decides its colour, and points are drawn where they are few. */
  private record Line(String name, String cssClass, boolean points, double[] x, double[] y) {}

  /**
   * An empty plot.
   *
   * @param format how values are written, such as {@code %.3f}
   */
  Plot(String title, String format) {
    this.title = title;
    this.format = format;
  }

  /** Adds a line; values that are not finite are left out. */
  Plot line(String name, String cssClass, boolean points, double[] x, double[] y) {
    if (x.length != y.length) {
      throw new IllegalArgumentException(
          "line '" + name + "' has " + x.length + " steps and " + y.length + " values");
    }
    List<double[]> kept = new ArrayList<>();
    for (int i = 0; i < x.length; i++) {
      if (Double.isFinite(y[i])) {
        kept.add(new double[] {x[i], y[i]});
      }
    }
    List<double[]> few = thinned(kept);
    lines.add(
        new Line(
            name,
            cssClass,
            points,
            few.stream().mapToDouble(p -> p[0]).toArray(),
            few.stream().mapToDouble(p -> p[1]).toArray()));
    return this;
  }

  /** Adds a dashed line at a value. */
  Plot level(String name, double value) {
    levelName = name;
    level = value;
    return this;
  }

  /** Names what it is over, for the reader's pointer; steps unless told otherwise. */
  Plot over(String name) {
    unit = name;
    return this;
  }

  /** Has the axis start at 0. */
  Plot fromZero() {
    fromZero = true;
    return this;
  }

  /** The lowest and the highest of each group of neighbours, in their order. */
  private static List<double[]> thinned(List<double[]> points) {
    if (points.size() <= MOST_POINTS) {
      return points;
    }
    List<double[]> few = new ArrayList<>();
    int groups = MOST_POINTS / 2;
    for (int g = 0; g < groups; g++) {
      int from = (int) ((long) points.size() * g / groups);
      int to = (int) ((long) points.size() * (g + 1) / groups);
      double[] low = points.get(from);
      double[] high = low;
      for (double[] p : points.subList(from, to)) {
        low = p[1] < low[1] ? p : low;
        high = p[1] > high[1] ? p : high;
      }
      few.add(low[0] <= high[0] ? low : high);
      if (low != high) {
        few.add(low[0] <= high[0] ? high : low);
      }
    }
    return few;
  }

  /** Rounded steps of 1, 2 or 5 times a power of ten. */
  static double[] ticks(double low, double high, int about) {
    double raw = Math.max((high - low) / about, 1e-300);
    double power = Math.pow(10, Math.floor(Math.log10(raw)));
    double factor = raw / power;
    double step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
    List<Double> at = new ArrayList<>();
    for (double k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      at.add(k == 0 ? 0 : k * step); // not -0
    }
    return at.stream().mapToDouble(Double::doubleValue).toArray();
  }

  /** The figure. */
  String html() {
    double left = Double.POSITIVE_INFINITY;
    double right = Double.NEGATIVE_INFINITY;
    double low = fromZero ? 0 : Double.POSITIVE_INFINITY;
    double high = level == null ? Double.NEGATIVE_INFINITY : level;
    for (Line l : lines) {
      for (int i = 0; i < l.x.length; i++) {
        left = Math.min(left, l.x[i]);
        right = Math.max(right, l.x[i]);
        low = Math.min(low, l.y[i]);
        high = Math.max(high, l.y[i]);
      }
    }
    if (left > right) {
      return "";
    }
    if (left == right) {
      right = left + 1;
    }
    double room = high > low ? 0.05 * (high - low) : Math.max(Math.abs(high) * 0.05, 1e-12);
    return figure(new Frame(left, right, fromZero ? low : low - room, high + room));
  }

  /** What of the plane is shown. Places are percent of the width, and of the height from above. */
  private record Frame(double left, double right, double low, double high) {
    double x(double value) {
      return 100 * (value - left) / (right - left);
    }

    double y(double value) {
      return 100 * (high - value) / (high - low);
    }
  }

  private String figure(Frame f) {
    StringBuilder labels = new StringBuilder();
    StringBuilder svg = new StringBuilder();
    for (double t : ticks(f.low, f.high, TICKS)) {
      labels.append(html("<span class=\"y\" style=\"top:%.2f%%\">%s</span>", f.y(t), tick(t)));
      svg.append(html("<path class=\"grid\" d=\"M0 %.3fH100\"/>", f.y(t)));
    }
    for (double t : ticks(f.left, f.right, TICKS)) {
      if (t == Math.rint(t)) {
        labels.append(html("<span class=\"x\" style=\"left:%.2f%%\">%,.0f</span>", f.x(t), t));
      }
    }
    Double at = level;
    if (at != null) {
      svg.append(html("<path class=\"level\" d=\"M0 %.3fH100\"/>", f.y(at)));
    }
    StringBuilder legend = new StringBuilder();
    for (Line l : lines) {
      svg.append(html("<path class=\"line %s\" d=\"%s\"/>", l.cssClass, path(l, f)));
      if (l.points) {
        svg.append(html("<path class=\"dots %s\" d=\"%s\"/>", l.cssClass, dots(l, f)));
      }
      if (lines.size() > 1 || at != null) {
        legend.append(html("<span class=\"key %s\">%s</span>", l.cssClass, l.name));
      }
    }
    if (at != null) {
      legend.append(html("<span class=\"key level\">%s</span>", levelName));
    }
    return html(
        "<figure><figcaption><h2>%s</h2><p class=\"legend\">%s</p></figcaption>"
            + "<div class=\"plot\" role=\"img\" aria-label=\"%s\"%s>"
            + "<svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">%s"
            + "</svg>%s<output class=\"readout\"></output></div></figure>%n",
        title, legend, summary(), data(f), svg, labels);
  }

  private static String path(Line l, Frame f) {
    StringBuilder d = new StringBuilder();
    for (int i = 0; i < l.x.length; i++) {
      d.append(html("%s%.3f %.3f", i == 0 ? "M" : "L", f.x(l.x[i]), f.y(l.y[i])));
    }
    return d.toString();
  }

  /** Lines without length, whose round ends are dots that no stretching distorts. */
  private static String dots(Line l, Frame f) {
    StringBuilder d = new StringBuilder();
    for (int i = 0; i < l.x.length; i++) {
      d.append(html("M%.3f %.3fh0", f.x(l.x[i]), f.y(l.y[i])));
    }
    return d.toString();
  }

  /** What the page's script shows under the pointer. */
  private String data(Frame f) {
    StringBuilder all = new StringBuilder();
    all.append(
        html(
            " data-unit=\"%s\" data-left=\"%s\" data-right=\"%s\" data-lines='[",
            unit, f.left, f.right));
    for (int k = 0; k < lines.size(); k++) {
      Line l = lines.get(k);
      all.append(k == 0 ? "" : ",").append("{\"name\":\"").append(l.name).append("\",\"x\":[");
      for (int i = 0; i < l.x.length; i++) {
        all.append(html("%s%.0f", i == 0 ? "" : ",", l.x[i]));
      }
      all.append("],\"y\":[");
      for (int i = 0; i < l.y.length; i++) {
        all.append(i == 0 ? "" : ",").append('"').append(value(l.y[i])).append('"');
      }
      all.append("]}");
    }
    return all.append("]'").toString();
  }

  private String summary() {
    StringBuilder text = new StringBuilder(title);
    for (Line l : lines) {
      if (l.x.length > 0) {
        int last = l.x.length - 1;
        text.append(html("; %s from %s to %s", l.name, value(l.y[0]), value(l.y[last])));
      }
    }
    return text.toString();
  }

  /** The value without zeros at its end. */
  private String tick(double v) {
    String text = value(v);
    boolean plain = text.contains(".") && !text.contains("e");
    return plain ? text.replaceAll("\\.?0+$", "") : text;
  }

  private String value(double v) {
    return html(format, v);
  }

  private static String html(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
