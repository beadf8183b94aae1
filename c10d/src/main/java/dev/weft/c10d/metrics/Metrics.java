package dev.weft.c10d.metrics;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * Named numbers, and their text for Prometheus. Thread-safe. The same name with the same labels is
 * the same number; a name has one kind.
 *
 * <p>The text is version 0.0.4 of Prometheus' exposition format
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
public final class Metrics {
  /** The content type of {@link #text}. */
  public static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

  private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
  private static final Pattern LABEL = Pattern.compile("[a-zA-Z_][a-zA-Z0-9_]*");

  private final Map<String, String> common;
  private final Map<String, Family> families = new TreeMap<>();

  private enum Kind {
    COUNTER,
    GAUGE,
    HISTOGRAM
  }

  private record Family(Kind kind, String help, Map<String, Object> byLabels) {}

  /** A number that only grows. Thread-safe. */
  public static final class Counter {
    private final DoubleAdder value = new DoubleAdder();

    private Counter() {}

    /** Adds an amount of 0 or more. */
    public void add(double amount) {
      if (!(amount >= 0)) {
        throw new IllegalArgumentException("amount is " + amount + "; expected 0 or more");
      }
      value.add(amount);
    }
  }

  /** A number that is set, or read when asked for. Thread-safe. */
  public static final class Gauge {
    private volatile DoubleSupplier value = () -> 0;

    private Gauge() {}

    /** Sets the number. */
    public void set(double now) {
      value = () -> now;
    }

    /** Has the number read whenever it is asked for, on the thread that asks. */
    public void read(DoubleSupplier source) {
      value = source;
    }
  }

  /**
   * No numbers yet.
   *
   * @param common labels that all of them get
   */
  public Metrics(Map<String, String> common) {
    this.common = new LinkedHashMap<>(common);
    common.keySet().forEach(l -> require(LABEL, "label", l));
  }

  /**
   * A counter, made when first asked for.
   *
   * @param name ends in {@code _total} by custom
   * @throws IllegalArgumentException if the name is not valid or is one of another kind
   */
  public Counter counter(String name, String help, Map<String, String> labels) {
    return find(Kind.COUNTER, name, help, labels, Counter.class, Counter::new);
  }

  /** A gauge, made when first asked for; it is 0 at first. */
  public Gauge gauge(String name, String help, Map<String, String> labels) {
    return find(Kind.GAUGE, name, help, labels, Gauge.class, Gauge::new);
  }

  /**
   * A histogram, made when first asked for.
   *
   * @param bounds the largest value of each bucket, ascending; one for all above is added
   */
  public Histogram histogram(
      String name, String help, Map<String, String> labels, double... bounds) {
    return find(Kind.HISTOGRAM, name, help, labels, Histogram.class, () -> new Histogram(bounds));
  }

  private <T> T find(
      Kind kind,
      String name,
      String help,
      Map<String, String> labels,
      Class<T> type,
      Supplier<T> make) {
    require(NAME, "name", name);
    labels.keySet().forEach(l -> require(LABEL, "label", l));
    Map<String, String> all = new LinkedHashMap<>(common);
    all.putAll(labels);
    synchronized (families) {
      Family family =
          families.computeIfAbsent(name, n -> new Family(kind, help, new LinkedHashMap<>()));
      if (family.kind() != kind) {
        throw new IllegalArgumentException(
            "metric '" + name + "' is a " + family.kind() + " already; expected the same kind");
      }
      return type.cast(family.byLabels().computeIfAbsent(text(all), k -> make.get()));
    }
  }

  private static void require(Pattern pattern, String what, String text) {
    if (!pattern.matcher(text).matches()) {
      throw new IllegalArgumentException(
          what + " '" + text + "' is not valid; expected one like " + pattern);
    }
  }

  // ---- the text ----

  /** All numbers now. */
  public String text() {
    StringBuilder out = new StringBuilder();
    Map<String, Family> now = new TreeMap<>();
    synchronized (families) {
      families.forEach(
          (name, f) ->
              now.put(name, new Family(f.kind(), f.help(), new LinkedHashMap<>(f.byLabels()))));
    }
    now.forEach((name, f) -> write(out, name, f));
    return out.toString();
  }

  private static void write(StringBuilder out, String name, Family family) {
    out.append("# HELP ")
        .append(name)
        .append(' ')
        .append(family.help().replace("\\", "\\\\").replace("\n", "\\n"))
        .append("\n# TYPE ")
        .append(name)
        .append(' ')
        .append(family.kind().name().toLowerCase(java.util.Locale.ROOT))
        .append('\n');
    family
        .byLabels()
        .forEach(
            (labels, value) -> {
              if (value instanceof Counter c) {
                line(out, name, labels, c.value.sum());
              } else if (value instanceof Gauge g) {
                line(out, name, labels, g.value.getAsDouble());
              } else if (value instanceof Histogram h) {
                histogram(out, name, labels, h);
              }
            });
  }

  private static void histogram(StringBuilder out, String name, String labels, Histogram h) {
    double[] bounds = h.bounds();
    long[] counts = h.cumulative();
    for (int i = 0; i < counts.length; i++) {
      String le = i < bounds.length ? number(bounds[i]) : "+Inf";
      String with = (labels.isEmpty() ? "" : labels + ",") + "le=\"" + le + "\"";
      line(out, name + "_bucket", with, (double) counts[i]);
    }
    line(out, name + "_sum", labels, h.sum());
    line(out, name + "_count", labels, (double) counts[counts.length - 1]);
  }

  private static void line(StringBuilder out, String name, String labels, double value) {
    out.append(name);
    if (!labels.isEmpty()) {
      out.append('{').append(labels).append('}');
    }
    out.append(' ').append(number(value)).append('\n');
  }

  private static String number(double value) {
    if (Double.isInfinite(value)) {
      return value > 0 ? "+Inf" : "-Inf";
    }
    return value == Math.rint(value) && Math.abs(value) < 1e15
        ? Long.toString((long) value)
        : Double.toString(value);
  }

  private static String text(Map<String, String> labels) {
    List<String> out = new ArrayList<>();
    labels.forEach(
        (label, value) ->
            out.add(
                label
                    + "=\""
                    + value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n")
                    + "\""));
    return String.join(",", out);
  }
}
