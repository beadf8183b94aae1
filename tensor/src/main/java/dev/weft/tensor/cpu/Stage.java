package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/**
 * Moves runs of equally spaced elements between native memory of any dtype and Java arrays of a
 * compute type. Stateless; nothing is checked.
 *
 * <p>Loops over Java arrays are what the JIT compiler vectorises, so every kernel works on staged
 * chunks; a dense run of the compute type's own dtype is one block copy.
 */
final class Stage {
  private Stage() {}

  /** Reads {@code n} elements that lie {@code step} bytes apart. */
  static void read(DType dtype, long address, long step, float[] to, int at, int n) {
    if (step == 0) {
      Arrays.fill(to, at, at + n, (float) Elements.getDouble(dtype, address));
      return;
    }
    switch (dtype) {
      case FLOAT32 -> {
        if (step == Float.BYTES) {
          Memory.get(address, to, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            to[at + i] = Memory.getFloat(address + i * step);
          }
        }
      }
      case FLOAT64 -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = (float) Memory.getDouble(address + i * step);
        }
      }
      case BFLOAT16 -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = HalfFloats.fromBfloat16(Memory.getShort(address + i * step));
        }
      }
      case FLOAT16 -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = HalfFloats.fromFloat16(Memory.getShort(address + i * step));
        }
      }
      case BOOL -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = Memory.getByte(address + i * step) != 0 ? 1 : 0;
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = (float) Elements.getLong(dtype, address + i * step);
        }
      }
    }
  }

  /** Reads {@code n} elements that lie {@code step} bytes apart. */
  static void read(DType dtype, long address, long step, double[] to, int at, int n) {
    if (step == 0) {
      Arrays.fill(to, at, at + n, Elements.getDouble(dtype, address));
      return;
    }
    switch (dtype) {
      case FLOAT64 -> {
        if (step == Double.BYTES) {
          Memory.get(address, to, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            to[at + i] = Memory.getDouble(address + i * step);
          }
        }
      }
      case FLOAT32 -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = Memory.getFloat(address + i * step);
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = Elements.getDouble(dtype, address + i * step);
        }
      }
    }
  }

  /** Reads {@code n} elements that lie {@code step} bytes apart. */
  static void read(DType dtype, long address, long step, long[] to, int at, int n) {
    if (step == 0) {
      Arrays.fill(to, at, at + n, Elements.getLong(dtype, address));
      return;
    }
    switch (dtype) {
      case INT64 -> {
        if (step == Long.BYTES) {
          Memory.get(address, to, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            to[at + i] = Memory.getLong(address + i * step);
          }
        }
      }
      case BOOL -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = Memory.getByte(address + i * step) != 0 ? 1 : 0;
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          to[at + i] = Elements.getLong(dtype, address + i * step);
        }
      }
    }
  }

  /** Writes {@code n} elements {@code step} bytes apart. */
  static void write(DType dtype, long address, long step, float[] from, int at, int n) {
    switch (dtype) {
      case FLOAT32 -> {
        if (step == Float.BYTES) {
          Memory.put(address, from, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            Memory.putFloat(address + i * step, from[at + i]);
          }
        }
      }
      case BFLOAT16 -> {
        for (int i = 0; i < n; i++) {
          Memory.putShort(address + i * step, HalfFloats.toBfloat16(from[at + i]));
        }
      }
      case FLOAT16 -> {
        for (int i = 0; i < n; i++) {
          Memory.putShort(address + i * step, HalfFloats.toFloat16(from[at + i]));
        }
      }
      case BOOL -> {
        for (int i = 0; i < n; i++) {
          Memory.putByte(address + i * step, (byte) (from[at + i] != 0 ? 1 : 0));
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          Elements.putDouble(dtype, address + i * step, from[at + i]);
        }
      }
    }
  }

  /** Writes {@code n} elements {@code step} bytes apart. */
  static void write(DType dtype, long address, long step, double[] from, int at, int n) {
    switch (dtype) {
      case FLOAT64 -> {
        if (step == Double.BYTES) {
          Memory.put(address, from, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            Memory.putDouble(address + i * step, from[at + i]);
          }
        }
      }
      case FLOAT32 -> {
        for (int i = 0; i < n; i++) {
          Memory.putFloat(address + i * step, (float) from[at + i]);
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          Elements.putDouble(dtype, address + i * step, from[at + i]);
        }
      }
    }
  }

  /** Writes {@code n} elements {@code step} bytes apart. */
  static void write(DType dtype, long address, long step, long[] from, int at, int n) {
    switch (dtype) {
      case INT64 -> {
        if (step == Long.BYTES) {
          Memory.put(address, from, at, n);
        } else {
          for (int i = 0; i < n; i++) {
            Memory.putLong(address + i * step, from[at + i]);
          }
        }
      }
      case BOOL -> {
        for (int i = 0; i < n; i++) {
          Memory.putByte(address + i * step, (byte) (from[at + i] != 0 ? 1 : 0));
        }
      }
      default -> {
        for (int i = 0; i < n; i++) {
          Elements.putLong(dtype, address + i * step, from[at + i]);
        }
      }
    }
  }
}
