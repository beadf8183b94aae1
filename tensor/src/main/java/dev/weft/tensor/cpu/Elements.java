package dev.weft.tensor.cpu;

import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/** Single elements of any dtype at an address. Stateless; nothing is checked. */
public final class Elements {
  private Elements() {}

  /** An element as a double; exact but for int64 beyond 2^53. */
  public static double getDouble(DType dtype, long address) {
    return switch (dtype) {
      case FLOAT64 -> Memory.getDouble(address);
      case FLOAT32 -> Memory.getFloat(address);
      case FLOAT16 -> HalfFloats.fromFloat16(Memory.getShort(address));
      case BFLOAT16 -> HalfFloats.fromBfloat16(Memory.getShort(address));
      default -> (double) getLong(dtype, address);
    };
  }

  /** An element as a long; fractions are cut, bool is 0 or 1. */
  public static long getLong(DType dtype, long address) {
    return switch (dtype) {
      case INT64 -> Memory.getLong(address);
      case INT32 -> Memory.getInt(address);
      case INT16 -> Memory.getShort(address);
      case INT8 -> Memory.getByte(address);
      case UINT8 -> Memory.getByte(address) & 0xff;
      case BOOL -> Memory.getByte(address) != 0 ? 1 : 0;
      default -> (long) getDouble(dtype, address);
    };
  }

  /** Writes a double, rounded to the dtype; integers cut fractions, bool is value != 0. */
  public static void putDouble(DType dtype, long address, double value) {
    switch (dtype) {
      case FLOAT64 -> Memory.putDouble(address, value);
      case FLOAT32 -> Memory.putFloat(address, (float) value);
      case FLOAT16 -> Memory.putShort(address, HalfFloats.toFloat16((float) value));
      case BFLOAT16 -> Memory.putShort(address, HalfFloats.toBfloat16((float) value));
      case BOOL -> Memory.putByte(address, (byte) (value != 0 ? 1 : 0));
      default -> putLong(dtype, address, (long) value);
    }
  }

  /** Writes a long, wrapped to the dtype's width; bool is value != 0. */
  public static void putLong(DType dtype, long address, long value) {
    switch (dtype) {
      case INT64 -> Memory.putLong(address, value);
      case INT32 -> Memory.putInt(address, (int) value);
      case INT16 -> Memory.putShort(address, (short) value);
      case INT8, UINT8 -> Memory.putByte(address, (byte) value);
      case BOOL -> Memory.putByte(address, (byte) (value != 0 ? 1 : 0));
      default -> putDouble(dtype, address, (double) value);
    }
  }
}
