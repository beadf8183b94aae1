package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.collect.ImmutableList;
import dev.weft.c10d.StoreException;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The file behind a {@link FileStore}: a header, then one record for each change, appended under a
 * lock on the file. Each user replays what others appended into a table of its own. A record that
 * its writer did not finish (it was killed) is cut off by the next writer. Not thread-safe; every
 * method but {@link #tryLock} and {@link #close} wants the lock held.
 */
final class FileLog {
  private static final byte[] HEADER = "weft-store 1\n".getBytes(US_ASCII);
  private static final int PREFIX = 1 + 4 + 4;
  private static final int JOIN = 100;
  private static final int LEAVE = 101;
  private static final int REMOVED = 102;
  private static final ImmutableList<Table.Change> CHANGES =
      ImmutableList.copyOf(Table.Change.values());

  private final Path path;
  private final RandomAccessFile file;
  private final Table table;
  private final ByteArrayOutputStream pending = new ByteArrayOutputStream();
  private boolean replaying;
  private long position;
  private int joined;
  private int present;
  private boolean removed;

  FileLog(Path path) throws IOException {
    this.path = path;
    this.file = new RandomAccessFile(path.toFile(), "rw");
    this.table =
        new Table(
            (change, key, value) -> {
              if (!replaying) {
                record(change.code(), key.getBytes(UTF_8), value);
              }
            });
  }

  /**
   * Tries to lock the file against other processes; the caller keeps other threads of this one
   * away.
   */
  @Nullable FileLock tryLock() throws IOException {
    return file.getChannel().tryLock();
  }

  Table table() {
    return table;
  }

  /** Whether the file was removed by its last user: who finds it so must open it anew. */
  boolean isRemoved() {
    return removed;
  }

  int present() {
    return present;
  }

  int joined() {
    return joined;
  }

  /** The number of bytes that have been replayed. */
  long position() {
    return position;
  }

  void join() {
    record(JOIN, new byte[0], new byte[0]);
    joined++;
    present++;
  }

  void leave() {
    record(LEAVE, new byte[0], new byte[0]);
    present--;
  }

  void remove() {
    record(REMOVED, new byte[0], new byte[0]);
    removed = true;
  }

  /** Reads what others appended since the last call. */
  void replay() throws IOException {
    long end = file.length();
    if (position == 0) {
      readHeader(end);
    }
    if (end < position) {
      throw new StoreException("file store " + path + " was cut short by somebody else");
    }
    replaying = true;
    try {
      while (position > 0 && replayOne(end)) {}
    } finally {
      replaying = false;
    }
  }

  private void readHeader(long end) throws IOException {
    byte[] start = new byte[(int) Math.min(end, HEADER.length)];
    file.seek(0);
    file.readFully(start);
    if (!Arrays.equals(start, Arrays.copyOf(HEADER, start.length))) {
      throw new StoreException(
          "file store "
              + path
              + ": the file is there but is not a store of Weft; expected a path of a new file");
    }
    if (start.length == HEADER.length) {
      position = HEADER.length;
    }
  }

  private boolean replayOne(long end) throws IOException {
    if (end - position < PREFIX) {
      return false;
    }
    byte[] prefix = new byte[PREFIX];
    file.seek(position);
    file.readFully(prefix);
    var fields = ByteBuffer.wrap(prefix);
    int kind = fields.get();
    int keyLength = fields.getInt();
    int valueLength = fields.getInt();
    if (keyLength < 0
        || valueLength < 0
        || (kind >= CHANGES.size() && kind < JOIN)
        || kind > REMOVED
        || kind < 0) {
      throw new StoreException("file store " + path + " is corrupt at byte " + position);
    }
    if (end - position - PREFIX < (long) keyLength + valueLength) {
      return false;
    }
    byte[] key = new byte[keyLength];
    byte[] value = new byte[valueLength];
    file.readFully(key);
    file.readFully(value);
    position += PREFIX + (long) keyLength + valueLength;
    switch (kind) {
      case JOIN -> {
        joined++;
        present++;
      }
      case LEAVE -> present--;
      case REMOVED -> removed = true;
      default -> table.apply(CHANGES.get(kind), new String(key, UTF_8), value);
    }
    return true;
  }

  /** Appends the changes that were made to the table since {@link #replay}. */
  void flush() throws IOException {
    if (pending.size() == 0) {
      return;
    }
    if (position == 0) {
      file.seek(0);
      file.write(HEADER);
      position = HEADER.length;
    }
    byte[] bytes = pending.toByteArray();
    pending.reset();
    file.setLength(position);
    file.seek(position);
    file.write(bytes);
    position += bytes.length;
  }

  private void record(int kind, byte[] key, byte[] value) {
    try {
      var out = new DataOutputStream(pending);
      out.writeByte(kind);
      out.writeInt(key.length);
      out.writeInt(value.length);
      out.write(key);
      out.write(value);
    } catch (IOException e) {
      throw new UncheckedIOException("a byte array does not refuse to grow", e);
    }
  }

  void close() throws IOException {
    file.close();
  }
}
