package dev.weft.tensor.memory;

import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import sun.misc.Unsafe;

/**
 * Raw reads, writes and copies of native memory by address. Any thread may call it; nothing is
 * checked: an address that is not inside a live allocation crashes the JVM. Kernels and backends
 * use it below the storages' gate; user code has no reason to.
 */
public final class Memory {
  private static final Unsafe UNSAFE = load();

  private static final long BUFFER_ADDRESS = bufferAddressOffset();

  private Memory() {}

  private static Unsafe load() {
    try {
      Field field = Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (Unsafe) field.get(null);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private static long bufferAddressOffset() {
    try {
      return UNSAFE.objectFieldOffset(Buffer.class.getDeclaredField("address"));
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The address of a direct buffer's first byte; valid while the buffer is reachable. */
  public static long addressOf(ByteBuffer direct) {
    if (!direct.isDirect()) {
      throw new IllegalArgumentException("buffer " + direct + " is not direct");
    }
    return UNSAFE.getLong(direct, BUFFER_ADDRESS);
  }

  /** Gives a mapped file's memory back; its address must not be used any more. */
  public static void unmap(MappedByteBuffer mapped) {
    UNSAFE.invokeCleaner(mapped);
  }

  static long malloc(long bytes) {
    return UNSAFE.allocateMemory(bytes);
  }

  static void free(long address) {
    UNSAFE.freeMemory(address);
  }

  /** Copies between native regions; they may overlap. */
  public static void copy(long source, long target, long bytes) {
    UNSAFE.copyMemory(source, target, bytes);
  }

  /** Fills a region with one byte. */
  public static void fill(long address, long bytes, byte value) {
    UNSAFE.setMemory(address, bytes, value);
  }

  /** Copies the bits of {@code n} floats between arrays. */
  public static void bits(float[] source, int[] target, int n) {
    UNSAFE.copyMemory(
        source, Unsafe.ARRAY_FLOAT_BASE_OFFSET, target, Unsafe.ARRAY_INT_BASE_OFFSET, 4L * n);
  }

  /** Copies {@code n} floats, given by their bits, between arrays. */
  public static void bits(int[] source, float[] target, int n) {
    UNSAFE.copyMemory(
        source, Unsafe.ARRAY_INT_BASE_OFFSET, target, Unsafe.ARRAY_FLOAT_BASE_OFFSET, 4L * n);
  }

  /** Reads {@code n} floats. */
  public static void get(long address, float[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_FLOAT_BASE_OFFSET + 4L * start, 4L * n);
  }

  /** Writes {@code n} floats. */
  public static void put(long address, float[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_FLOAT_BASE_OFFSET + 4L * start, null, address, 4L * n);
  }

  /** Reads {@code n} doubles. */
  public static void get(long address, double[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_DOUBLE_BASE_OFFSET + 8L * start, 8L * n);
  }

  /** Writes {@code n} doubles. */
  public static void put(long address, double[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_DOUBLE_BASE_OFFSET + 8L * start, null, address, 8L * n);
  }

  /** Reads {@code n} longs. */
  public static void get(long address, long[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_LONG_BASE_OFFSET + 8L * start, 8L * n);
  }

  /** Writes {@code n} longs. */
  public static void put(long address, long[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_LONG_BASE_OFFSET + 8L * start, null, address, 8L * n);
  }

  /** Reads {@code n} ints. */
  public static void get(long address, int[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_INT_BASE_OFFSET + 4L * start, 4L * n);
  }

  /** Writes {@code n} ints. */
  public static void put(long address, int[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_INT_BASE_OFFSET + 4L * start, null, address, 4L * n);
  }

  /** Reads {@code n} shorts. */
  public static void get(long address, short[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_SHORT_BASE_OFFSET + 2L * start, 2L * n);
  }

  /** Writes {@code n} shorts. */
  public static void put(long address, short[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_SHORT_BASE_OFFSET + 2L * start, null, address, 2L * n);
  }

  /** Reads {@code n} bytes. */
  public static void get(long address, byte[] target, int start, int n) {
    UNSAFE.copyMemory(null, address, target, Unsafe.ARRAY_BYTE_BASE_OFFSET + (long) start, n);
  }

  /** Writes {@code n} bytes. */
  public static void put(long address, byte[] source, int start, int n) {
    UNSAFE.copyMemory(source, Unsafe.ARRAY_BYTE_BASE_OFFSET + (long) start, null, address, n);
  }

  /** Reads a float. */
  public static float getFloat(long address) {
    return UNSAFE.getFloat(address);
  }

  /** Writes a float. */
  public static void putFloat(long address, float value) {
    UNSAFE.putFloat(address, value);
  }

  /** Reads a double. */
  public static double getDouble(long address) {
    return UNSAFE.getDouble(address);
  }

  /** Writes a double. */
  public static void putDouble(long address, double value) {
    UNSAFE.putDouble(address, value);
  }

  /** Reads a long. */
  public static long getLong(long address) {
    return UNSAFE.getLong(address);
  }

  /** Writes a long. */
  public static void putLong(long address, long value) {
    UNSAFE.putLong(address, value);
  }

  /** Reads a long that other threads or processes write, and sees what they wrote before it. */
  public static long getLongAcquire(long address) {
    return UNSAFE.getLongVolatile(null, address);
  }

  /** Writes a long after all that was written before, as other threads or processes see it. */
  public static void putLongRelease(long address, long value) {
    UNSAFE.putOrderedLong(null, address, value);
  }

  /** Reads an int. */
  public static int getInt(long address) {
    return UNSAFE.getInt(address);
  }

  /** Writes an int. */
  public static void putInt(long address, int value) {
    UNSAFE.putInt(address, value);
  }

  /** Reads a short. */
  public static short getShort(long address) {
    return UNSAFE.getShort(address);
  }

  /** Writes a short. */
  public static void putShort(long address, short value) {
    UNSAFE.putShort(address, value);
  }

  /** Reads a byte. */
  public static byte getByte(long address) {
    return UNSAFE.getByte(address);
  }

  /** Writes a byte. */
  public static void putByte(long address, byte value) {
    UNSAFE.putByte(address, value);
  }
}
