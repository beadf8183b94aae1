package dev.weft.tensor.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class FastMathTest {
  @Test
  void expIsWithinTwoUlpsOverTheWholeRange() {
    int n = 20_000;
    float[] x = new float[n];
    for (int i = 0; i < n; i++) {
      x[i] = -104 + 193f * i / n;
    }
    float[] y = new float[n];
    FastMath.exp(x, y, n);
    for (int i = 0; i < n; i++) {
      double exact = Math.exp((double) x[i]);
      assertThat((double) y[i])
          .as("exp(%s)", x[i])
          .isCloseTo(exact, within(2.0 * Math.ulp((float) exact)));
    }
  }

  @Test
  void expOfSpecialValues() {
    float[] x = {
      0, -0f, Float.NEGATIVE_INFINITY, Float.POSITIVE_INFINITY, Float.NaN, 88.8f, -110, 1
    };
    FastMath.exp(x, x, x.length);
    assertThat(x)
        .containsExactly(
            1,
            1,
            0,
            Float.POSITIVE_INFINITY,
            Float.NaN,
            Float.POSITIVE_INFINITY,
            0,
            (float) Math.E);
  }

  /** Values of the error function to 16 digits, from Abramowitz and Stegun's table 7.1 onwards. */
  @Test
  void erfAgreesWithKnownValues() {
    assertThat(FastMath.erf(0)).isZero();
    assertThat(FastMath.erf(0.1)).isCloseTo(0.1124629160182849, within(1e-15));
    assertThat(FastMath.erf(0.5)).isCloseTo(0.5204998778130465, within(1e-15));
    assertThat(FastMath.erf(1)).isCloseTo(0.8427007929497149, within(1e-15));
    assertThat(FastMath.erf(-2)).isCloseTo(-0.9953222650189527, within(1e-15));
    assertThat(FastMath.erf(3.5)).isCloseTo(0.9999992569016276, within(1e-15));
    assertThat(FastMath.erf(Double.POSITIVE_INFINITY)).isEqualTo(1);
    assertThat(FastMath.erf(Double.NaN)).isNaN();
    // No step where the series ends.
    assertThat(FastMath.erf(0.5) - FastMath.erf(Math.nextDown(0.5))).isBetween(-1e-15, 1e-15);
  }

  /** The known answers that come with the published code of Philox-4x32-10. */
  @Test
  void philoxGivesItsKnownAnswers() {
    Philox zero = new Philox(0, 0);
    assertThat(Long.toHexString(zero.bits(0))).isEqualTo("e169c58d6627e8d5");
    assertThat(Long.toHexString(zero.bits(1))).isEqualTo("9b00dbd8bc57ac4c");
  }
}
