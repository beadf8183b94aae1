package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.Elements;
import java.util.Arrays;

/** Tensors in the golden files: reading, and comparing with the rules of grading. */
final class JsonTensors {
  private JsonTensors() {}

  /** The tensor of a {@code {dtype, shape, data}} node. */
  static Tensor read(JsonNode node) {
    DType dtype = DType.of(node.get("dtype").asText());
    StridedTensor t = Tensors.empty(dtype, Json.longs(node.get("shape")));
    JsonNode data = node.get("data");
    long address = t.dataAddress();
    for (int i = 0; i < data.size(); i++) {
      JsonNode v = data.get(i);
      long at = address + (long) i * dtype.byteSize();
      if (dtype.isFloatingPoint()) {
        Elements.putDouble(dtype, at, number(v));
      } else {
        Elements.putLong(dtype, at, v.isBoolean() ? (v.asBoolean() ? 1 : 0) : v.asLong());
      }
    }
    return t;
  }

  /** A number; non-finite ones are strings, and minus zero is kept. */
  static double number(JsonNode v) {
    if (v.isTextual()) {
      return switch (v.asText()) {
        case "nan" -> Double.NaN;
        case "inf" -> Double.POSITIVE_INFINITY;
        case "-inf" -> Double.NEGATIVE_INFINITY;
        default -> throw new IllegalArgumentException("'" + v.asText() + "' is not a number");
      };
    }
    return v.asDouble();
  }

  /** How far apart numbers may be. */
  record Tolerance(double absolute, double relative) {
    static final Tolerance EXACT = new Tolerance(0, 0);

    /** NaN equals NaN. */
    boolean allows(double want, double got) {
      return Double.isNaN(want)
          ? Double.isNaN(got)
          : want == got || Math.abs(got - want) <= absolute + relative * Math.abs(want);
    }

    static Tolerance of(DType dtype) {
      return switch (dtype) {
        case FLOAT32 -> new Tolerance(1e-5, 1e-5);
        case FLOAT64 -> new Tolerance(1e-12, 1e-12);
        default -> EXACT;
      };
    }
  }

  /** Compares with the tolerance of the dtype. */
  static void requireClose(String what, JsonNode want, Tensor got) {
    requireClose(what, want, got, Tolerance.of(got.dtype()));
  }

  /** Compares two tensors with the tolerance of the dtype. */
  static void requireClose(String what, Tensor want, Tensor got) {
    Json.requireEqual(what + " dtype", want.dtype(), got.dtype());
    Json.requireEqual(what + " shape", Arrays.toString(want.shape()), Arrays.toString(got.shape()));
    Tolerance tolerance = Tolerance.of(got.dtype());
    double[] w = want.toDoubleArray();
    double[] g = got.toDoubleArray();
    for (int i = 0; i < w.length; i++) {
      Json.require(
          tolerance.allows(w[i], g[i]), what + "[" + i + "]: got " + g[i] + ", want " + w[i]);
    }
  }

  /** Compares shape, dtype and values. */
  static void requireClose(String what, JsonNode want, Tensor got, Tolerance tolerance) {
    Json.requireEqual(what + " dtype", want.get("dtype").asText(), got.dtype());
    Json.requireEqual(
        what + " shape",
        Arrays.toString(Json.longs(want.get("shape"))),
        Arrays.toString(got.shape()));
    JsonNode data = want.get("data");
    if (got.dtype().isFloatingPoint()) {
      double[] values = got.toDoubleArray();
      for (int i = 0; i < values.length; i++) {
        double w = number(data.get(i));
        double g = values[i];
        boolean same =
            Double.isNaN(w)
                ? Double.isNaN(g)
                : w == g
                    || Math.abs(g - w) <= tolerance.absolute + tolerance.relative * Math.abs(w);
        Json.require(same, what + "[" + i + "]: got " + g + ", want " + w);
      }
      return;
    }
    long[] values = got.toLongArray();
    boolean truth = got.dtype() == DType.BOOL;
    for (int i = 0; i < values.length; i++) {
      JsonNode v = data.get(i);
      long w =
          v.isBoolean() ? (v.asBoolean() ? 1 : 0) : truth ? (v.asLong() != 0 ? 1 : 0) : v.asLong();
      Json.require(values[i] == w, what + "[" + i + "]: got " + values[i] + ", want " + w);
    }
  }
}
