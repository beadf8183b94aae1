package dev.weft.tensor;

import dev.weft.tensor.cpu.HostData;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Values of a plain CPU tensor as text, in PyTorch's form. Stateless. */
final class TensorFormat {
  private static final long SUMMARISE = 1000;
  private static final int EDGE = 3;

  private TensorFormat() {}

  /** {@code tensor([[1., 2.], [3., 4.]])} with dtype and gradient where they are not the usual. */
  static String format(StridedTensor t) {
    StringBuilder out = new StringBuilder("tensor(");
    boolean summarise = t.numel() > SUMMARISE;
    if (t.numel() == 0) {
      out.append("[]");
      if (t.ndim() != 1) {
        out.append(", size=").append(Arrays.toString(t.shape()));
      }
    } else {
      Style style = new Style(t.dtype(), shownValues(t, summarise));
      append(out, t, 0, 0, style, summarise, "tensor(".length());
    }
    boolean usual =
        t.dtype() == DType.FLOAT32 || t.dtype() == DType.INT64 || t.dtype() == DType.BOOL;
    if (!usual) {
      out.append(", dtype=").append(t.dtype());
    }
    if (t.gradFn() != null) {
      out.append(", gradFn=").append(t.gradFn().op());
    } else if (t.requiresGrad()) {
      out.append(", requiresGrad=true");
    }
    return out.append(')').toString();
  }

  /** How the numbers are written, so that columns line up. */
  private static final class Style {
    private final DType dtype;
    private boolean integral = true;
    private boolean scientific;
    private int width;

    Style(DType dtype, double[] values) {
      this.dtype = dtype;
      double max = 0;
      double min = Double.POSITIVE_INFINITY;
      for (double v : values) {
        if (!Double.isNaN(v) && !Double.isInfinite(v)) {
          integral &= v == Math.rint(v);
          double a = Math.abs(v);
          max = Math.max(max, a);
          min = a > 0 ? Math.min(min, a) : min;
        }
      }
      boolean any = max > 0;
      scientific = any && (max > 1e8 || (!integral && (max / min > 1000 || min < 1e-4)));
      for (double v : values) {
        width = Math.max(width, text(v).length());
      }
    }

    private String text(double v) {
      if (dtype == DType.BOOL) {
        return v != 0 ? "true" : "false";
      }
      if (Double.isNaN(v)) {
        return "nan";
      }
      if (Double.isInfinite(v)) {
        return v > 0 ? "inf" : "-inf";
      }
      if (!dtype.isFloatingPoint()) {
        return String.format(Locale.ROOT, "%.0f", v);
      }
      if (scientific) {
        return String.format(Locale.ROOT, "%.4e", v);
      }
      return integral
          ? String.format(Locale.ROOT, "%.0f.", v)
          : String.format(Locale.ROOT, "%.4f", v);
    }

    String padded(double v) {
      String s = text(v);
      return " ".repeat(Math.max(0, width - s.length())) + s;
    }
  }

  private static double[] shownValues(StridedTensor t, boolean summarise) {
    if (!summarise) {
      return HostData.doubles(t);
    }
    List<Double> values = new ArrayList<>();
    collect(t, 0, 0, values);
    return values.stream().mapToDouble(Double::doubleValue).toArray();
  }

  private static void collect(StridedTensor t, int dim, long offset, List<Double> values) {
    if (dim == t.ndim()) {
      values.add(value(t, offset));
      return;
    }
    long n = t.shape()[dim];
    for (long i = 0; i < n; i++) {
      if (n > 2 * EDGE && i == EDGE) {
        i = n - EDGE;
      }
      collect(t, dim + 1, offset + i * t.strides()[dim], values);
    }
  }

  private static double value(StridedTensor t, long offset) {
    return HostData.item(t.withLayout(new long[0], new long[0], t.offset() + offset));
  }

  private static void append(
      StringBuilder out,
      StridedTensor t,
      int dim,
      long offset,
      Style style,
      boolean summarise,
      int indent) {
    if (dim == t.ndim()) {
      out.append(style.padded(value(t, offset)));
      return;
    }
    boolean last = dim == t.ndim() - 1;
    String separator = last ? ", " : "," + "\n".repeat(t.ndim() - 1 - dim) + " ".repeat(indent + 1);
    out.append('[');
    long n = t.shape()[dim];
    for (long i = 0; i < n; i++) {
      if (i > 0) {
        out.append(separator);
      }
      if (summarise && n > 2 * EDGE && i == EDGE) {
        out.append("...").append(separator);
        i = n - EDGE;
      }
      append(out, t, dim + 1, offset + i * t.strides()[dim], style, summarise, indent + 1);
    }
    out.append(']');
  }
}
