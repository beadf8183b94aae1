package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Memory that all ranks of a group have: mapped from one file, or that of the process whose threads
 * they are. Counters are written with release and read with acquire, by any thread; the rest is for
 * one thread of each rank at a time.
 */
final class SharedSegment {
  /** The token's length. */
  static final int TOKEN = 16;

  private static final int BLOCK = 1 << 20;

  private final SharedLayout layout;
  private final long base;
  private final Runnable release;
  private final @Nullable ByteBuffer mapped;
  private boolean released;

  /**
   * Memory that is there.
   *
   * @param release gives it back, once
   */
  SharedSegment(SharedLayout layout, long base, Runnable release) {
    this(layout, base, release, null);
  }

  private SharedSegment(
      SharedLayout layout, long base, Runnable release, @Nullable ByteBuffer mapped) {
    this.layout = layout;
    this.base = base;
    this.release = release;
    this.mapped = mapped;
  }

  /**
   * Makes the file, with all its memory: a file system that is full is found out here, not in the
   * middle of a write.
   *
   * @param token what those who open it look for
   */
  static void create(Path file, SharedLayout layout, byte[] token) throws IOException {
    Files.createFile(
        file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocateDirect(BLOCK);
      long left = layout.bytes();
      while (left > 0) {
        zeros.clear().limit((int) Math.min(BLOCK, left));
        left -= channel.write(zeros);
      }
      ByteBuffer head = ByteBuffer.wrap(token);
      while (head.hasRemaining()) {
        int unused = channel.write(head, head.position());
      }
    } catch (IOException | RuntimeException e) {
      Files.deleteIfExists(file);
      throw e;
    }
  }

  /** Maps a file that another rank, or this one, has made on this machine. */
  static SharedSegment map(Path file, SharedLayout layout, byte[] token) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (channel.size() != layout.bytes()) {
        throw new IOException(
            file + " has " + channel.size() + " bytes, expected " + layout.bytes());
      }
      MappedByteBuffer buffer = channel.map(FileChannel.MapMode.READ_WRITE, 0, layout.bytes());
      byte[] there = new byte[TOKEN];
      buffer.get(0, there);
      if (!Arrays.equals(there, token)) {
        Memory.unmap(buffer);
        throw new IOException(file + " is another file of the same name");
      }
      return new SharedSegment(
          layout, Memory.addressOf(buffer), () -> Memory.unmap(buffer), buffer);
    }
  }

  SharedLayout layout() {
    return layout;
  }

  /** One of a rank's counters, and all that was written before it was set. */
  long counter(int rank, int which) {
    return Memory.getLongAcquire(base + layout.counter(rank, which));
  }

  void setCounter(int rank, int which, long value) {
    Memory.putLongRelease(base + layout.counter(rank, which), value);
  }

  /** Where one of a rank's counters lies; its lower half first. */
  long counterAddress(int rank, int which) {
    return base + layout.counter(rank, which);
  }

  /** Where a rank says what it calls. */
  long call(int rank, long sequence) {
    return base + layout.call(rank, sequence);
  }

  /** Where a rank puts what goes along with a call. */
  long inline(int rank, long sequence) {
    return base + layout.inline(rank, sequence);
  }

  long slot(int rank, long step) {
    return base + layout.slot(rank, step);
  }

  /** All of a rank's slots, in mapped memory; not to be used after {@link #release}. */
  ByteBuffer slots(int rank) {
    int start = (int) (slot(rank, 0) - base);
    int length = SharedLayout.SLOTS * layout.slotBytes();
    return Objects.requireNonNull(mapped).slice(start, length);
  }

  /** A counter, for a thread that does not take part; the last there is when that is gone. */
  synchronized long peek(int rank, int which) {
    return released ? Long.MAX_VALUE : counter(rank, which);
  }

  /** Gives the memory back; this rank may not use it any more. */
  synchronized void release() {
    if (!released) {
      released = true;
      release.run();
    }
  }
}
