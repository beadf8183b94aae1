package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.OutputStream;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A terminal whose last lines are a block that is drawn anew, with all other output scrolling above
 * it. Thread-safe. What goes to {@link #out} and {@link #err} must be whole lines a write; one that
 * ends in a carriage return becomes a line.
 *
 * <p>Control sequences are those of ECMA-48: cursor up, erase below; and DEC's private mode 7
 * (wrap) is off while the block is drawn, so that its lines are one row each however narrow the
 * terminal.
 */
public final class LiveScreen {
  private static final Logger log = LoggerFactory.getLogger(LiveScreen.class);
  private static final long EVERY_NANOS = 500_000_000;
  private static final String NO_WRAP = "\u001b[?7l";
  private static final String WRAP = "\u001b[?7h";
  private static final String ERASE_BELOW = "\u001b[J";

  private final OutputStream terminal;
  private final OutputStream out;
  private final OutputStream err;
  private final Object lock = new Object();
  private @Nullable Supplier<List<String>> block;
  private int drawn;

  /**
   * Makes a screen with no block yet.
   *
   * @param terminal where the block is drawn and standard output goes
   * @param err where standard error goes, the same terminal or not
   */
  public LiveScreen(OutputStream terminal, OutputStream err) {
    this.terminal = terminal;
    this.out = new Above(terminal);
    this.err = new Above(err);
  }

  /** Where standard output is to go. */
  public OutputStream out() {
    return out;
  }

  /** Where standard error is to go. */
  public OutputStream err() {
    return err;
  }

  /** Draws a block twice a second from now on, on a daemon thread, until it is left. */
  void show(Supplier<List<String>> lines) {
    synchronized (lock) {
      block = lines;
    }
    Thread thread =
        new Thread(
            () -> {
              while (isShown(lines)) {
                redraw();
                LockSupport.parkNanos(this, EVERY_NANOS);
              }
            },
            "weft-live");
    thread.setDaemon(true);
    thread.start();
  }

  /** Draws the block for the last time; it stays where it is. */
  void leave(Supplier<List<String>> lines) {
    synchronized (lock) {
      if (isShown(lines)) {
        redraw();
        block = null;
        drawn = 0;
      }
    }
  }

  private boolean isShown(Supplier<List<String>> lines) {
    synchronized (lock) {
      return block == lines;
    }
  }

  void redraw() {
    synchronized (lock) {
      try {
        terminal.write((erase() + draw()).getBytes(UTF_8));
        terminal.flush();
      } catch (IOException e) {
        block = null;
        log.debug("the terminal is closed", e);
      }
    }
  }

  private String erase() {
    String up = drawn == 0 ? "" : "\u001b[" + drawn + "A\r" + ERASE_BELOW;
    drawn = 0;
    return up;
  }

  private String draw() {
    Supplier<List<String>> source = block;
    if (source == null) {
      return "";
    }
    List<String> lines = source.get();
    drawn = lines.size();
    return NO_WRAP + String.join("\n", lines) + "\n" + WRAP;
  }

  /** Passes output on to where it belongs, with the block out of its way. */
  private final class Above extends OutputStream {
    private final OutputStream target;

    Above(OutputStream target) {
      this.target = target;
    }

    @Override
    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int start, int length) throws IOException {
      synchronized (lock) {
        if (block == null) {
          target.write(bytes, start, length);
          target.flush();
          return;
        }
        terminal.write(erase().getBytes(UTF_8));
        terminal.flush();
        boolean progress = length > 0 && bytes[start + length - 1] == '\r';
        target.write(bytes, start, progress ? length - 1 : length);
        if (progress) {
          target.write('\n');
        }
        target.flush();
        terminal.write(draw().getBytes(UTF_8));
        terminal.flush();
      }
    }

    @Override
    public void flush() throws IOException {
      synchronized (lock) {
        target.flush();
      }
    }
  }
}
