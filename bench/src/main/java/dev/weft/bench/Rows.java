package dev.weft.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Results as JSON lines {@code {"bench", "impl", "params", "value", "unit"}}, printed as they come.
 * Not thread-safe.
 */
public final class Rows {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final String impl;
  private final @Nullable PrintStream out;
  private final List<Row> all = new ArrayList<>();
  private final Map<String, String> notes = new LinkedHashMap<>();

  /**
   * One result.
   *
   * @param bench what was measured
   * @param params under which conditions, {@code stat} among them
   * @param value in {@code unit}
   */
  public record Row(String bench, Map<String, Object> params, double value, String unit) {}

  /**
   * Collects rows of Weft.
   *
   * @param out where they are printed, or null not to
   */
  public Rows(@Nullable PrintStream out) {
    this("weft", out);
  }

  /**
   * Collects rows of a variant.
   *
   * @param impl what is measured, such as {@code weft-tcp}
   * @param out where they are printed, or null not to
   */
  public Rows(String impl, @Nullable PrintStream out) {
    this.impl = impl;
    this.out = out;
  }

  /** Adds a field to the lines from now on, beside the params: what does not tell rows apart. */
  void note(String name, String value) {
    notes.put(name, value);
  }

  /** Adds the best and the median of a row's rounds, in microseconds a call. */
  void add(String bench, Timing.Result result, Object... params) {
    print(bench, result.best(), "best", params);
    print(bench, result.median(), "median", params);
  }

  /**
   * Adds one value.
   *
   * @param params names and values in turn
   */
  void addValue(String bench, double value, String unit, Object... params) {
    Map<String, Object> map = new TreeMap<>();
    for (int i = 0; i < params.length; i += 2) {
      map.put((String) params[i], params[i + 1]);
    }
    print(new Row(bench, map, Math.round(value * 1000) / 1000.0, unit));
  }

  private void print(String bench, double value, String stat, Object... params) {
    Object[] more = java.util.Arrays.copyOf(params, params.length + 2);
    more[params.length] = "stat";
    more[params.length + 1] = stat;
    addValue(bench, value, "us", more);
  }

  private void print(Row row) {
    all.add(row);
    if (out == null) {
      return;
    }
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("bench", row.bench());
    line.put("impl", impl);
    line.put("params", row.params());
    line.put("value", row.value());
    line.put("unit", row.unit());
    line.putAll(notes);
    try {
      out.println(MAPPER.writeValueAsString(line));
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a row cannot be written: " + row, e);
    }
    out.flush();
  }

  /** What was printed. */
  public List<Row> all() {
    return List.copyOf(all);
  }
}
