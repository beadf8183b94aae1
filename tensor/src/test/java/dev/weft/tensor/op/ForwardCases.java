package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/** Reads the cases of {@link ForwardTest}. */
final class ForwardCases {
  private ForwardCases() {}

  /** One call and what it gives; {@code expected} is null where it must be refused. */
  record Case(
      String op, Args args, String inputText, List<Expected> expected, String expectedText) {
    Tensor[] inputs() {
      return Arrays.stream(inputText.split("\\|")).map(ForwardCases::tensor).toArray(Tensor[]::new);
    }

    @Override
    public String toString() {
      return op + "(" + inputText + "; " + args + ") expected " + expectedText;
    }
  }

  record Expected(DType dtype, long[] shape, String[] values) {}

  /** Named arguments. */
  static final class Args {
    private final Map<String, String> values = new HashMap<>();
    private final String text;

    Args(String text) {
      this.text = text;
      for (String part : text.split(";")) {
        int eq = part.indexOf('=');
        if (eq > 0) {
          values.put(part.substring(0, eq), part.substring(eq + 1));
        }
      }
    }

    boolean has(String name) {
      return values.containsKey(name);
    }

    String text(String name) {
      return Objects.requireNonNull(values.get(name), name);
    }

    boolean flag(String name) {
      return "True".equals(values.get(name));
    }

    int whole(String name) {
      return Integer.parseInt(text(name));
    }

    double real(String name) {
      return ForwardCases.real(text(name));
    }

    Number number(String name) {
      String s = text(name);
      return s.matches("-?\\d+") ? (Number) Integer.valueOf(s) : (Number) ForwardCases.real(s);
    }

    Number numberOrNull(String name) {
      return has(name) ? number(name) : null;
    }

    int[] ints(String name) {
      return has(name)
          ? Arrays.stream(text(name).split(",")).mapToInt(Integer::parseInt).toArray()
          : new int[0];
    }

    long[] longs(String name) {
      return Arrays.stream(ints(name)).asLongStream().toArray();
    }

    @Override
    public String toString() {
      return text;
    }
  }

  private static double real(String s) {
    return switch (s) {
      case "inf" -> Double.POSITIVE_INFINITY;
      case "-inf" -> Double.NEGATIVE_INFINITY;
      case "nan" -> Double.NaN;
      default -> Double.parseDouble(s);
    };
  }

  static List<Case> read() {
    List<Case> cases = new ArrayList<>();
    try (InputStream raw = ForwardCases.class.getResourceAsStream("forward.tsv.gz");
        BufferedReader in =
            new BufferedReader(
                new InputStreamReader(
                    new GZIPInputStream(Objects.requireNonNull(raw)), StandardCharsets.UTF_8))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String[] f = line.split("\t", -1);
        List<Expected> expected =
            f[3].equals("error")
                ? null
                : Arrays.stream(f[3].split("\\|")).map(ForwardCases::expected).toList();
        cases.add(new Case(f[0], new Args(f[1]), f[2], expected, f[3]));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return cases;
  }

  private static Expected expected(String text) {
    int open = text.indexOf('[');
    int close = text.indexOf(']');
    String sizes = text.substring(open + 1, close);
    long[] shape =
        sizes.isEmpty()
            ? new long[0]
            : Arrays.stream(sizes.split(",")).mapToLong(Long::parseLong).toArray();
    String values = text.substring(close + 2);
    return new Expected(
        DType.of(text.substring(0, open)),
        shape,
        values.isEmpty() ? new String[0] : values.split(" "));
  }

  private static Tensor tensor(String text) {
    Expected e = expected(text);
    Tensor t;
    if (e.dtype.isFloatingPoint()) {
      t = Tensor.of(Arrays.stream(e.values).mapToDouble(ForwardCases::real).toArray(), e.shape);
    } else {
      t = Tensor.of(Arrays.stream(e.values).mapToLong(Long::parseLong).toArray(), e.shape);
    }
    return Casts.to(t, e.dtype);
  }

  /** The same values, the first dimension innermost, with gaps and an offset. */
  static Tensor strided(Tensor t) {
    return strided(t, Device.CPU);
  }

  /** The same on a device. */
  static Tensor strided(Tensor t, Device device) {
    int n = t.ndim();
    long[] strides = new long[n];
    long step = 2;
    for (int d = 0; d < n; d++) {
      strides[d] = step;
      step *= t.shape()[d] + 1;
    }
    StridedTensor base = Creation.full(1, t.dtype(), device, step + 3);
    return InPlace.copy(base.withLayout(t.shape(), strides, 3), t.to(device));
  }

  static String format(Tensor t) {
    return t.dtype()
        + Arrays.toString(t.shape())
        + ":"
        + (t.dtype().isFloatingPoint()
            ? Arrays.toString(t.toDoubleArray())
            : Arrays.toString(t.toLongArray()));
  }

  /** Equal shape and dtype; integers exactly, floats to a few units of their precision. */
  static boolean close(Tensor t, Expected e, double factor) {
    if (t.dtype() != e.dtype || !Arrays.equals(t.shape(), e.shape)) {
      return false;
    }
    if (!e.dtype.isFloatingPoint()) {
      long[] v = t.toLongArray();
      for (int i = 0; i < v.length; i++) {
        if (v[i] != Long.parseLong(e.values[i])) {
          return false;
        }
      }
      return true;
    }
    double tolerance =
        factor
            * switch (e.dtype) {
              case FLOAT64 -> 1e-12;
              case FLOAT32 -> 2e-6;
              case FLOAT16 -> 2e-3;
              default -> 1.6e-2;
            };
    double[] v = t.toDoubleArray();
    for (int i = 0; i < v.length; i++) {
      double x = real(e.values[i]);
      boolean same =
          Double.isNaN(x)
              ? Double.isNaN(v[i])
              : Double.isInfinite(x)
                  ? v[i] == x
                  : Math.abs(v[i] - x) <= tolerance * Math.max(1, Math.abs(x));
      if (!same) {
        return false;
      }
    }
    return true;
  }
}
