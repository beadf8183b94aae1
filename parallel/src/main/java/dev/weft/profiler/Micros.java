package dev.weft.profiler;

/** Nanoseconds as the microseconds of traces. Stateless. */
final class Micros {
  private Micros() {}

  /** With three decimals, exactly. */
  static String text(long nanos) {
    long abs = Math.abs(nanos);
    int rest = (int) (abs % 1000);
    StringBuilder out = new StringBuilder(24);
    if (nanos < 0) {
      out.append('-');
    }
    out.append(abs / 1000).append('.');
    if (rest < 100) {
      out.append('0');
    }
    if (rest < 10) {
      out.append('0');
    }
    return out.append(rest).toString();
  }
}
