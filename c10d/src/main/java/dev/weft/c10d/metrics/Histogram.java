package dev.weft.c10d.metrics;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.DoubleAdder;

/** How often values fell between bounds. Thread-safe; a value takes no lock. */
public final class Histogram {
  private final double[] bounds;
  private final AtomicLongArray counts;
  private final DoubleAdder sum = new DoubleAdder();

  Histogram(double... bounds) {
    this.bounds = bounds.clone();
    this.counts = new AtomicLongArray(bounds.length + 1);
    for (int i = 1; i < bounds.length; i++) {
      if (!(bounds[i - 1] < bounds[i])) {
        throw new IllegalArgumentException(
            "bounds are " + Arrays.toString(bounds) + "; expected each above the one before");
      }
    }
  }

  /** Counts a value. */
  public void observe(double value) {
    int i = Arrays.binarySearch(bounds, value);
    long unused = counts.incrementAndGet(i < 0 ? -i - 1 : i); // a bound belongs to its bucket
    sum.add(value);
  }

  double[] bounds() {
    return bounds.clone();
  }

  /** How many values were at most each bound, and at last how many there were. */
  long[] cumulative() {
    long[] out = new long[counts.length()];
    long all = 0;
    for (int i = 0; i < out.length; i++) {
      all += counts.get(i);
      out[i] = all;
    }
    return out;
  }

  double sum() {
    return sum.sum();
  }
}
