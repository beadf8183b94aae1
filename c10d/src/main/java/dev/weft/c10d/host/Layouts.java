package dev.weft.c10d.host;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;

/**
 * Copies between a tensor of any layout and row-major memory, without passing the storage's gate:
 * the collective that fills a storage writes it while others wait for it. Stateless.
 */
final class Layouts {
  private Layouts() {}

  /** Copies a tensor's elements to memory, row-major. */
  static void pack(StridedTensor from, long to) {
    long bytes = from.numel() * from.dtype().byteSize();
    if (from.isContiguous()) {
      Memory.copy(from.rawAddress(), to, bytes);
    } else if (bytes > 0) {
      walk(from, 0, from.rawAddress(), to, true);
    }
  }

  /** Copies row-major elements into a tensor. */
  static void unpack(long from, StridedTensor to) {
    long bytes = to.numel() * to.dtype().byteSize();
    if (to.isContiguous()) {
      Memory.copy(from, to.rawAddress(), bytes);
    } else if (bytes > 0) {
      walk(to, 0, to.rawAddress(), from, false);
    }
  }

  /** Returns the packed address after the part. */
  private static long walk(StridedTensor t, int dim, long strided, long packed, boolean pack) {
    int width = t.dtype().byteSize();
    long size = t.shape()[dim];
    long step = t.strides()[dim] * width;
    long at = packed;
    if (dim < t.ndim() - 1) {
      for (long i = 0; i < size; i++) {
        at = walk(t, dim + 1, strided + i * step, at, pack);
      }
      return at;
    }
    if (step == width) {
      if (pack) {
        Memory.copy(strided, at, size * width);
      } else {
        Memory.copy(at, strided, size * width);
      }
      return at + size * width;
    }
    for (long i = 0; i < size; i++) {
      move(pack ? strided : at, pack ? at : strided, width);
      strided += step;
      at += width;
    }
    return at;
  }

  private static void move(long from, long to, int width) {
    switch (width) {
      case 8 -> Memory.putLong(to, Memory.getLong(from));
      case 4 -> Memory.putInt(to, Memory.getInt(from));
      case 2 -> Memory.putShort(to, Memory.getShort(from));
      default -> Memory.putByte(to, Memory.getByte(from));
    }
  }
}
