package dev.weft.tensor.cpu;

/**
 * Reduces the elements of one output, which arrive in order in pieces. Not thread-safe; started
 * anew for every output. Reducers whose result is exact in integers also take longs.
 */
abstract class Reducer {
  /** Forgets everything. */
  abstract void start();

  /** Takes the next elements, {@code values[from..to)}. */
  abstract void accept(double[] values, int from, int to);

  /** The result so far. */
  abstract double result();

  /** Takes the next elements of an integer tensor. */
  void accept(long[] values, int from, int to) {
    throw new UnsupportedOperationException("no integer reduction");
  }

  /** The exact result of an integer tensor. */
  long longResult() {
    return (long) result();
  }

  /** The product. */
  static final class Prod extends Reducer {
    private double product;
    private long longProduct;

    @Override
    void start() {
      product = 1;
      longProduct = 1;
    }

    @Override
    void accept(double[] values, int from, int to) {
      for (int i = from; i < to; i++) {
        product *= values[i];
      }
    }

    @Override
    void accept(long[] values, int from, int to) {
      for (int i = from; i < to; i++) {
        longProduct *= values[i];
      }
    }

    @Override
    double result() {
      return product;
    }

    @Override
    long longResult() {
      return longProduct;
    }
  }

  /** The largest or smallest element; NaN wins. */
  static final class Extremum extends Reducer {
    private final boolean max;
    private double best;
    private long longBest;

    Extremum(boolean max) {
      this.max = max;
    }

    @Override
    void start() {
      best = max ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
      longBest = max ? Long.MIN_VALUE : Long.MAX_VALUE;
    }

    @Override
    void accept(double[] values, int from, int to) {
      double b = best;
      for (int i = from; i < to; i++) {
        b = max ? Math.max(b, values[i]) : Math.min(b, values[i]);
      }
      best = b;
    }

    @Override
    void accept(long[] values, int from, int to) {
      long b = longBest;
      for (int i = from; i < to; i++) {
        b = max ? Math.max(b, values[i]) : Math.min(b, values[i]);
      }
      longBest = b;
    }

    @Override
    double result() {
      return best;
    }

    @Override
    long longResult() {
      return longBest;
    }
  }

  /** The index of the first largest or smallest element, or of the first NaN. */
  static final class ArgExtremum extends Reducer {
    private final boolean max;
    private double best;
    private long longBest;
    private long seen;
    private long index;

    ArgExtremum(boolean max) {
      this.max = max;
    }

    @Override
    void start() {
      seen = 0;
      index = -1;
    }

    @Override
    void accept(double[] values, int from, int to) {
      for (int i = from; i < to; i++, seen++) {
        double v = values[i];
        boolean better = max ? v > best : v < best;
        if (index < 0 || (!Double.isNaN(best) && (better || Double.isNaN(v)))) {
          best = v;
          index = seen;
        }
      }
    }

    @Override
    void accept(long[] values, int from, int to) {
      for (int i = from; i < to; i++, seen++) {
        long v = values[i];
        if (index < 0 || (max ? v > longBest : v < longBest)) {
          longBest = v;
          index = seen;
        }
      }
    }

    @Override
    double result() {
      return index;
    }

    @Override
    long longResult() {
      return index;
    }
  }

  /** 1 where all (or any) elements are not 0. */
  static final class Logic extends Reducer {
    private final boolean all;
    private boolean value;

    Logic(boolean all) {
      this.all = all;
    }

    @Override
    void start() {
      value = all;
    }

    @Override
    void accept(double[] values, int from, int to) {
      for (int i = from; i < to; i++) {
        boolean v = values[i] != 0;
        value = all ? value && v : value || v;
      }
    }

    @Override
    double result() {
      return value ? 1 : 0;
    }
  }

  /** The p-norm of the elements as a vector; p may be infinite, or 0 for the count of non-zeros. */
  static final class Norm extends Reducer {
    private final double p;
    private double sum;

    Norm(double p) {
      this.p = p;
    }

    @Override
    void start() {
      sum = p == Double.NEGATIVE_INFINITY ? Double.POSITIVE_INFINITY : 0;
    }

    @Override
    void accept(double[] values, int from, int to) {
      double s = sum;
      for (int i = from; i < to; i++) {
        double v = Math.abs(values[i]);
        if (p == 2) {
          s += v * v;
        } else if (p == 1) {
          s += v;
        } else if (p == Double.POSITIVE_INFINITY) {
          s = Math.max(s, v);
        } else if (p == Double.NEGATIVE_INFINITY) {
          s = Math.min(s, v);
        } else if (p == 0) {
          s += v != 0 ? 1 : 0;
        } else {
          s += Math.pow(v, p);
        }
      }
      sum = s;
    }

    @Override
    double result() {
      if (p == 2) {
        return Math.sqrt(sum);
      }
      return p == 1 || p == 0 || Double.isInfinite(p) ? sum : Math.pow(sum, 1 / p);
    }
  }

  /**
   * The variance or standard deviation with a divisor of n - correction. Pieces are merged by the
   * formula of Chan, Golub and LeVeque (1979).
   */
  static final class Variance extends Reducer {
    private final double correction;
    private final boolean root;
    private double count;
    private double mean;
    private double squares;

    Variance(double correction, boolean root) {
      this.correction = correction;
      this.root = root;
    }

    @Override
    void start() {
      count = 0;
      mean = 0;
      squares = 0;
    }

    @Override
    void accept(double[] values, int from, int to) {
      double n = to - from;
      double sum = 0;
      for (int i = from; i < to; i++) {
        sum += values[i];
      }
      double m = sum / n;
      double s = 0;
      for (int i = from; i < to; i++) {
        double d = values[i] - m;
        s += d * d;
      }
      double total = count + n;
      double delta = m - mean;
      squares += s + delta * delta * count * n / total;
      mean += delta * n / total;
      count = total;
    }

    @Override
    double result() {
      double v = count == 0 ? Double.NaN : squares / Math.max(0, count - correction);
      return root ? Math.sqrt(v) : v;
    }
  }

  /** ln of the sum of exponentials. */
  static final class LogSumExp extends Reducer {
    private double max;
    private double sum;

    @Override
    void start() {
      max = Double.NEGATIVE_INFINITY;
      sum = 0;
    }

    @Override
    void accept(double[] values, int from, int to) {
      double m = max;
      for (int i = from; i < to; i++) {
        m = Math.max(m, values[i]);
      }
      double shift = Double.isInfinite(m) ? 0 : m;
      double s = sum == 0 ? 0 : sum * Math.exp(max - shift);
      for (int i = from; i < to; i++) {
        s += Math.exp(values[i] - shift);
      }
      max = m;
      sum = s;
    }

    @Override
    double result() {
      return Math.log(sum) + (Double.isInfinite(max) ? 0 : max);
    }
  }
}
