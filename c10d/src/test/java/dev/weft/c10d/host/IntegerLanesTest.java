package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * P32: whole numbers and truth values are reduced as one at a time would be, whatever their bits.
 */
class IntegerLanesTest {
  private static final int RANKS = 3;
  private static final int MOST = 2 * Lanes.CHUNK + 5;

  private static final List<ReduceOp> OPERATIONS =
      List.of(
          ReduceOp.SUM,
          ReduceOp.PRODUCT,
          ReduceOp.MIN,
          ReduceOp.MAX,
          ReduceOp.BAND,
          ReduceOp.BOR,
          ReduceOp.BXOR);

  private static long get(DType dtype, long address) {
    return switch (dtype) {
      case INT64 -> Memory.getLong(address);
      case INT32 -> Memory.getInt(address);
      case INT16 -> Memory.getShort(address);
      case UINT8 -> Memory.getByte(address) & 0xff;
      case BOOL -> Memory.getByte(address) == 0 ? 0 : 1;
      default -> Memory.getByte(address);
    };
  }

  private static long wrapped(DType dtype, long value) {
    return switch (dtype) {
      case INT64 -> value;
      case INT32 -> (int) value;
      case INT16 -> (short) value;
      case UINT8 -> value & 0xff;
      case BOOL -> value == 0 ? 0 : 1;
      default -> (byte) value;
    };
  }

  private static long reduced(DType dtype, ReduceOp op, long a, long b) {
    return wrapped(
        dtype,
        switch (op.kind()) {
          case SUM -> a + b;
          case PRODUCT -> a * b;
          case MIN -> Math.min(a, b);
          case MAX -> Math.max(a, b);
          case BAND -> a & b;
          case BOR -> a | b;
          case BXOR -> a ^ b;
          default -> throw new IllegalArgumentException(op.toString());
        });
  }

  /** Edges of each range among bits of chance; truth values of any bits. */
  private static long fill(DType dtype, Random random) {
    int width = dtype.byteSize();
    long[] edges = {0, 1, -1, 0x7f, 0x80, 0x7fff, 0x8000, Integer.MIN_VALUE, Long.MIN_VALUE};
    long address = HostMemory.allocate((long) MOST * width);
    for (int i = 0; i < MOST; i++) {
      long value = random.nextInt(3) == 0 ? edges[random.nextInt(edges.length)] : random.nextLong();
      for (int b = 0; b < width; b++) {
        Memory.putByte(address + (long) i * width + b, (byte) (value >>> (8 * b)));
      }
    }
    return address;
  }

  @ParameterizedTest
  @EnumSource(names = {"INT64", "INT32", "INT16", "INT8", "UINT8", "BOOL"})
  void everyOperationAndLength(DType dtype) {
    int width = dtype.byteSize();
    Random random = new Random(5);
    long[] sources = new long[RANKS];
    for (int r = 0; r < RANKS; r++) {
      sources[r] = fill(dtype, random);
    }
    long target = HostMemory.allocate((long) (MOST + 1) * width);
    for (ReduceOp op : OPERATIONS) {
      for (int n : new int[] {0, 1, 2, 3, 7, 8, 9, 15, Lanes.CHUNK - 1, Lanes.CHUNK + 3, MOST}) {
        for (int b = 0; b < width; b++) {
          Memory.putByte(target + (long) n * width + b, (byte) 0x5a);
        }
        Lanes.reduce(dtype, op, sources, n, target);
        for (int i = 0; i < n; i++) {
          long expected = wrapped(dtype, get(dtype, sources[0] + (long) i * width));
          for (int r = 1; r < RANKS; r++) {
            expected = reduced(dtype, op, expected, get(dtype, sources[r] + (long) i * width));
          }
          long at = target + (long) i * width;
          long got = dtype == DType.BOOL ? Memory.getByte(at) : get(dtype, at);
          if (got != expected) {
            assertThat(got).as("%s %s, %s of %s", op, dtype, i, n).isEqualTo(expected);
          }
        }
        for (int b = 0; b < width; b++) {
          assertThat(Memory.getByte(target + (long) n * width + b))
              .as("behind")
              .isEqualTo((byte) 0x5a);
        }
      }
    }
    for (long s : sources) {
      HostMemory.free(s, (long) MOST * width);
    }
    HostMemory.free(target, (long) (MOST + 1) * width);
  }
}
