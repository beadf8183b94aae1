package dev.weft.tensor.cpu;

/**
 * Conversions of the two 16-bit floating-point formats, rounding to nearest even. Stateless.
 *
 * <p>float16 is IEEE 754 binary16; bfloat16 is the upper half of a binary32.
 */
public final class HalfFloats {
  private HalfFloats() {}

  /** The value of a bfloat16. */
  public static float fromBfloat16(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** The nearest bfloat16; NaN stays NaN. */
  public static short toBfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }

  /** The value of a float16. */
  public static float fromFloat16(short half) {
    int sign = (half & 0x8000) << 16;
    int exponent = (half >>> 10) & 0x1f;
    int mantissa = half & 0x3ff;
    if (exponent == 0x1f) {
      return Float.intBitsToFloat(sign | 0x7f800000 | (mantissa << 13));
    }
    if (exponent == 0) {
      // Zero and subnormals: mantissa * 2^-24 is exact in float32.
      float magnitude = mantissa * 0x1p-24f;
      return sign == 0 ? magnitude : -magnitude;
    }
    return Float.intBitsToFloat(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }

  /** The nearest float16; too large becomes infinite, NaN stays NaN. */
  public static short toFloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    int sign = (bits >>> 16) & 0x8000;
    int abs = bits & 0x7fffffff;
    if (abs >= 0x7f800000) {
      return (short) (sign | 0x7c00 | (abs > 0x7f800000 ? 0x200 : 0));
    }
    if (abs >= 0x477ff000) { // rounds to 65520 or more
      return (short) (sign | 0x7c00);
    }
    if (abs < 0x38800000) { // below the smallest normal number, 2^-14
      float scaled = Float.intBitsToFloat(abs) * 0x1p24f; // exact, or below half a subnormal
      return (short) (sign | (int) Math.rint(scaled));
    }
    int rounded = abs + 0xfff + ((abs >>> 13) & 1);
    return (short) (sign | ((rounded - 0x38000000) >>> 13));
  }
}
