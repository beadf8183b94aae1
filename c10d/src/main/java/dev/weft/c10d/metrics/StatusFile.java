package dev.weft.c10d.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file in which a rank says how far it is, for its launcher. Thread-safe. What is told is written
 * by a daemon thread four times a second, as a whole file that takes the last one's place; closing
 * writes the last.
 */
public final class StatusFile implements AutoCloseable {
  /** The variable that names the file. */
  public static final String VARIABLE = "WEFT_STATUS_FILE";

  private static final Logger log = LoggerFactory.getLogger(StatusFile.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long EVERY_NANOS = 250_000_000;
  private static final long CLOSE_MILLIS = 1_000;

  private final Path file;
  private final Thread thread;
  private final AtomicBoolean broken = new AtomicBoolean();
  private volatile @Nullable Status now;
  private volatile boolean closed;

  /**
   * How far a rank is. Immutable.
   *
   * @param step the step that has ended, from 1
   * @param loss its loss; NaN where it is not known
   * @param tokensPerSecond of the whole run
   * @param hostBytes live memory of host tensors
   * @param gpuBytes live memory of tensors on the rank's GPU, 0 without one
   * @param millis when it was told, in milliseconds since 1970
   */
  public record Status(
      long step, double loss, double tokensPerSecond, long hostBytes, long gpuBytes, long millis) {}

  private StatusFile(Path file) {
    this.file = file;
    this.thread = new Thread(this::run, "weft-status");
    thread.setDaemon(true);
  }

  /** Starts to write a file. */
  public static StatusFile open(Path file) {
    StatusFile status = new StatusFile(file);
    status.thread.start();
    return status;
  }

  /** Tells how far this rank is; returns at once. */
  public void tell(Status status) {
    now = status;
  }

  private void run() {
    Status written = null;
    while (!closed) {
      LockSupport.parkNanos(this, EVERY_NANOS);
      Status next = now;
      if (next != null && !next.equals(written)) {
        write(next);
        written = next;
      }
    }
    Status last = now;
    if (last != null && !last.equals(written)) {
      write(last);
    }
  }

  private void write(Status status) {
    Path fresh = file.resolveSibling(file.getFileName() + ".new");
    try {
      Files.write(fresh, JSON.valueToTree(status).toString().getBytes(UTF_8));
      Path unused = Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      if (broken.compareAndSet(false, true)) {
        log.warn("{} '{}' cannot be written: the launcher shows no progress", VARIABLE, file, e);
      }
    }
  }

  /** What a rank has told last, or nothing. */
  public static Optional<Status> read(Path file) throws IOException {
    return Files.exists(file)
        ? Optional.of(JSON.readValue(Files.readAllBytes(file), Status.class))
        : Optional.empty();
  }

  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    try {
      thread.join(CLOSE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
