package dev.weft.c10d.host;

import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.nio.charset.StandardCharsets;

/**
 * Bytes that arrived. To be used by one thread: {@link #acquire}, read, {@link #release}. Memory
 * that a peer lends may be taken back before it is acquired, not after.
 */
abstract class Payload {
  /** How many bytes. */
  abstract long bytes();

  /** False when the sender has given up; nothing may be read then. */
  abstract boolean acquire();

  /** Where they are; valid between acquire and release. */
  abstract long address();

  /** Copies all bytes; between acquire and release. */
  void copyTo(long target) {
    Memory.copy(address(), target, bytes());
  }

  /** Ends the reading. */
  abstract void release();

  /** Bytes in a Java array that came along with a message. */
  static final class Inline extends Payload {
    private final byte[] data;
    private long copy;

    Inline(byte[] data) {
      this.data = data;
    }

    /** The bytes as text. */
    String text() {
      return new String(data, StandardCharsets.UTF_8);
    }

    @Override
    long bytes() {
      return data.length;
    }

    @Override
    boolean acquire() {
      return true;
    }

    @Override
    void copyTo(long target) {
      Memory.put(target, data, 0, data.length);
    }

    @Override
    long address() {
      if (copy == 0 && data.length > 0) {
        copy = HostMemory.allocate(data.length);
        Memory.put(copy, data, 0, data.length);
      }
      return copy;
    }

    @Override
    void release() {
      if (copy != 0) {
        HostMemory.free(copy, data.length);
        copy = 0;
      }
    }
  }

  /** Bytes in native memory that belongs to the payload. */
  static final class Owned extends Payload {
    private final long address;
    private final long bytes;
    private boolean freed;
    private boolean withdrawn;

    /** Takes over a block of {@link HostMemory}; zero bytes need none. */
    Owned(long address, long bytes) {
      this.address = address;
      this.bytes = bytes;
    }

    @Override
    long bytes() {
      return bytes;
    }

    /** The sender has given up; has no effect once acquired. */
    synchronized void withdraw() {
      withdrawn = true;
    }

    @Override
    synchronized boolean acquire() {
      return !withdrawn;
    }

    @Override
    long address() {
      return address;
    }

    @Override
    synchronized void release() {
      if (!freed && bytes > 0) {
        freed = true;
        HostMemory.free(address, bytes);
      }
    }
  }
}
