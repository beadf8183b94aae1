package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies one stream of a process line by line, each with a prefix, so that lines of several
 * processes never mix: whole lines go out in one write, under the lock of the target. Remembers the
 * last lines. One thread runs it; {@link #lastLines} may be called from any.
 */
final class LinePump implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(LinePump.class);

  /**
   * A line that is longer than this is cut, so that a process without line ends cannot fill the
   * memory.
   */
  private static final int MAX_LINE = 1 << 20;

  private final InputStream in;
  private final OutputStream target;
  private final byte[] prefix;
  private final int remembered;
  private final OutputStream file;
  private boolean fileBroken;
  private final Deque<String> last = new ArrayDeque<>();
  private final ByteArrayOutputStream line = new ByteArrayOutputStream();

  LinePump(InputStream in, OutputStream target, String prefix, int remembered) {
    this(in, target, prefix, remembered, OutputStream.nullOutputStream());
  }

  /**
   * Makes a pump.
   *
   * @param file gets everything as it comes, without the prefix; the pump closes it
   */
  LinePump(InputStream in, OutputStream target, String prefix, int remembered, OutputStream file) {
    this.file = file;
    this.in = in;
    this.target = target;
    this.prefix = prefix.getBytes(UTF_8);
    this.remembered = remembered;
  }

  @Override
  public void run() {
    byte[] buffer = new byte[1 << 13];
    try (in;
        file) {
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        save(buffer, n);
        copy(buffer, n);
      }
    } catch (IOException e) {
      log.debug("the output of a rank ended", e); // its process was killed while its pipe was read
    }
    if (line.size() > 0) {
      var whole = new ByteArrayOutputStream();
      endLine(whole, '\n');
      write(whole);
    }
  }

  /** Writes to the file; a full disk must not block the rank. */
  private void save(byte[] buffer, int n) {
    if (fileBroken) {
      return;
    }
    try {
      file.write(buffer, 0, n);
    } catch (IOException e) {
      fileBroken = true;
      log.warn("a rank's log file cannot be written, and ends here", e);
    }
  }

  private void copy(byte[] buffer, int n) {
    var whole = new ByteArrayOutputStream();
    int start = 0;
    for (int i = 0; i < n; i++) {
      // A line that ends in a carriage return is progress, to be overwritten: it is shown at once.
      boolean progress =
          buffer[i] == '\r' && line.size() + i > start && (i + 1 == n || buffer[i + 1] != '\n');
      boolean end = buffer[i] == '\n' || progress;
      if (end || line.size() + i - start >= MAX_LINE) {
        line.write(buffer, start, i - start);
        start = end ? i + 1 : i;
        endLine(whole, progress ? '\r' : '\n');
      }
    }
    line.write(buffer, start, n - start);
    write(whole);
  }

  private void endLine(ByteArrayOutputStream whole, char end) {
    whole.writeBytes(prefix);
    whole.writeBytes(line.toByteArray());
    whole.write(end);
    if (remembered > 0 && end == '\n') {
      synchronized (last) {
        if (last.size() == remembered) {
          last.removeFirst();
        }
        last.add(line.toString(UTF_8));
      }
    }
    line.reset();
  }

  private void write(ByteArrayOutputStream whole) {
    if (whole.size() == 0) {
      return;
    }
    synchronized (target) {
      try {
        whole.writeTo(target);
        target.flush();
      } catch (IOException e) {
        // Whoever read the launcher's output is gone (as in `weft run ... | head`); the ranks must
        // not block on theirs.
        log.debug("the launcher's output is closed", e);
      }
    }
  }

  List<String> lastLines() {
    synchronized (last) {
      return List.copyOf(last);
    }
  }
}
