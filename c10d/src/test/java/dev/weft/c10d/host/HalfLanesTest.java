package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.cpu.HalfFloats;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** P32: 16-bit elements are reduced in float32 and rounded once, whatever their bits. */
class HalfLanesTest {
  private static final int N = 1 << 16;

  private static float wide(DType dtype, short bits) {
    return dtype == DType.FLOAT16 ? HalfFloats.fromFloat16(bits) : HalfFloats.fromBfloat16(bits);
  }

  private static short narrow(DType dtype, float value) {
    return dtype == DType.FLOAT16 ? HalfFloats.toFloat16(value) : HalfFloats.toBfloat16(value);
  }

  /** Every pattern of bits, with partners at random: sums, products and means of two. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void everyPattern(DType dtype) {
    int odd = N + 1;
    long[] sources = {HostMemory.allocate(2L * odd), HostMemory.allocate(2L * odd)};
    long target = HostMemory.allocate(2L * odd);
    Random random = new Random(3);
    for (int i = 0; i < odd; i++) {
      Memory.putShort(sources[0] + 2L * i, (short) i);
      // Zero for some, so that the pattern itself comes out.
      Memory.putShort(sources[1] + 2L * i, (short) (i % 3 == 0 ? 0 : random.nextInt()));
    }
    for (ReduceOp op :
        new ReduceOp[] {
          ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.AVG, ReduceOp.MAX, ReduceOp.premulSum(0.3)
        }) {
      Lanes.reduce(dtype, op, sources, odd, target);
      for (int i = 0; i < odd; i++) {
        float a = wide(dtype, Memory.getShort(sources[0] + 2L * i));
        float b = wide(dtype, Memory.getShort(sources[1] + 2L * i));
        float expected =
            switch (op.kind()) {
              case SUM -> a + b;
              case PRODUCT -> a * b;
              case AVG -> (a + b) / 2;
              case MAX -> Math.max(a, b);
              default -> a * 0.3f + b * 0.3f;
            };
        short got = Memory.getShort(target + 2L * i);
        if (Float.isNaN(expected)) {
          assertThat(wide(dtype, got)).as("%s %s %s", op, a, b).isNaN();
        } else {
          assertThat(got).as("%s %s %s", op, a, b).isEqualTo(narrow(dtype, expected));
        }
      }
    }
    HostMemory.free(sources[0], 2L * odd);
    HostMemory.free(sources[1], 2L * odd);
    HostMemory.free(target, 2L * odd);
  }
}
