package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;

/**
 * A stretch of native memory.
 *
 * @param address its first byte
 * @param bytes its length
 */
record Piece(long address, long bytes) {
  /** A copy of its bytes. */
  byte[] toArray() {
    byte[] out = new byte[Math.toIntExact(bytes)];
    Memory.get(address, out, 0, out.length);
    return out;
  }
}
