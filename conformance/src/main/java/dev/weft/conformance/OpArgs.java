package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Views;
import org.jspecify.annotations.Nullable;

/** The attributes of an operator in the golden files; {@code args} holds positional ones. */
record OpArgs(JsonNode node) {
  boolean has(String name) {
    return node.hasNonNull(name);
  }

  boolean hasArgs() {
    return node.hasNonNull("args") && node.get("args").size() > 0;
  }

  private JsonNode arg(int i) {
    JsonNode args = node.get("args");
    if (args == null || i >= args.size()) {
      throw new CaseRunner.Mismatch("attribute args[" + i + "] is missing in " + node);
    }
    return args.get(i);
  }

  int at(int i) {
    return arg(i).asInt();
  }

  int at(int i, int otherwise) {
    return hasArgs() && i < node.get("args").size() ? at(i) : otherwise;
  }

  boolean isList(int i) {
    return arg(i).isArray();
  }

  /** One dimension or a list of them. */
  int[] dimsAt(int i) {
    return ints(arg(i));
  }

  long[] sizesAt(int i) {
    return Json.longs(arg(i));
  }

  int at(String name, int otherwise) {
    return has(name) ? node.get(name).asInt() : otherwise;
  }

  long[] sizes(String name) {
    JsonNode v = node.get(name);
    if (v == null) {
      throw new CaseRunner.Mismatch("attribute " + name + " is missing in " + node);
    }
    return Json.longs(v);
  }

  long integer(String name, int position, long otherwise) {
    return has(name) ? node.get(name).asLong() : at(position, (int) otherwise);
  }

  double real(String name, double otherwise) {
    return has(name) ? JsonTensors.number(node.get(name)) : otherwise;
  }

  boolean flag(String name) {
    return flag(name, false);
  }

  boolean flag(String name, boolean otherwise) {
    return has(name) ? node.get(name).asBoolean() : otherwise;
  }

  String text(String name, String otherwise) {
    return has(name) ? node.get(name).asText() : otherwise;
  }

  /** An integer stays one: its category counts for promotion. */
  @Nullable Number number(String name) {
    if (!has(name)) {
      return null;
    }
    JsonNode v = node.get(name);
    return v.isIntegralNumber() ? (Number) v.asLong() : (Number) JsonTensors.number(v);
  }

  Number number(String name, Number otherwise) {
    Number n = number(name);
    return n == null ? otherwise : n;
  }

  Number value() {
    Number n = number("value");
    if (n == null) {
      throw new CaseRunner.Mismatch("attribute value is missing in " + node);
    }
    return n;
  }

  /** The dimensions of a reduction; none means all. */
  int[] dims() {
    return has("dim") ? ints(node.get("dim")) : hasArgs() ? dimsAt(0) : new int[0];
  }

  boolean keep() {
    return flag("keepdim");
  }

  double correction() {
    return has("correction") ? node.get("correction").asDouble() : flag("unbiased", true) ? 1 : 0;
  }

  double ord() {
    return real("ord", 2);
  }

  long[] shifts() {
    JsonNode v = has("shifts") ? node.get("shifts") : arg(0);
    return v.isArray() ? Json.longs(v) : new long[] {v.asLong()};
  }

  /** The dimensions of a roll; none means over the flattened tensor. */
  int[] rollDims() {
    if (has("dims")) {
      return ints(node.get("dims"));
    }
    return hasArgs() && node.get("args").size() > 1 ? dimsAt(1) : new int[0];
  }

  /** {@code [start, stop]} or {@code [start, stop, step]} for each leading dimension. */
  Tensor slice(Tensor x) {
    Tensor out = x;
    JsonNode slices = node.get("slices");
    for (int d = 0; d < slices.size(); d++) {
      JsonNode s = slices.get(d);
      long step = s.size() > 2 && !s.get(2).isNull() ? s.get(2).asLong() : 1;
      long start = s.get(0).isNull() ? 0 : s.get(0).asLong();
      long stop = s.size() < 2 || s.get(1).isNull() ? x.size(d) : s.get(1).asLong();
      if (start != 0 || stop < x.size(d) || step != 1) {
        out = Views.slice(out, d, start, stop, step);
      }
    }
    return out;
  }

  private static int[] ints(JsonNode v) {
    return v.isArray() ? Json.ints(v) : new int[] {v.asInt()};
  }
}
