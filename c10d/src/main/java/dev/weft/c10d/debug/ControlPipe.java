package dev.weft.c10d.debug;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A named pipe of a rank: who writes to it ({@code echo > PREFIX0.pipe}) has the flight recorder
 * dumped, whatever the rank is doing. One daemon thread reads it; closing it removes the pipe.
 */
public final class ControlPipe implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ControlPipe.class);
  private static final long CLOSE_MILLIS = 1_000;

  private final Path path;
  private final RandomAccessFile pipe;
  private final FlightRecorder recorder;
  private final Thread thread;
  private volatile boolean closed;

  private ControlPipe(Path path, RandomAccessFile pipe, int rank, FlightRecorder recorder) {
    this.path = path;
    this.pipe = pipe;
    this.recorder = recorder;
    this.thread = new Thread(this::read, "weft-control-" + rank);
    thread.setDaemon(true);
  }

  /** The pipe's file name but for the rank and {@code .pipe}, if one is wanted. */
  public static @Nullable String prefix(Map<String, String> environment) {
    return new Variables(environment)
        .text("WEFT_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  }

  /**
   * Makes the pipe of a rank, in place of what an earlier run has left there.
   *
   * @throws DistributedException if it cannot be made
   */
  public static ControlPipe open(String prefix, int rank, FlightRecorder recorder) {
    Path path = Path.of(prefix + rank + ".pipe");
    try {
      Files.deleteIfExists(path);
      Process made =
          new ProcessBuilder(List.of("mkfifo", path.toString())).redirectErrorStream(true).start();
      String said = new String(made.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (made.waitFor() != 0) {
        throw new IOException(said.strip());
      }
      // For reading and writing: opening does not wait for a writer, and none is ever the last.
      ControlPipe pipe =
          new ControlPipe(path, new RandomAccessFile(path.toFile(), "rw"), rank, recorder);
      pipe.thread.start();
      return pipe;
    } catch (IOException e) {
      throw new DistributedException(
          "the named pipe '"
              + path
              + "' (WEFT_DEBUG_INFO_PIPE_FILE) cannot be made: "
              + e.getMessage(),
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new DistributedException("interrupted while making the named pipe '" + path + "'", e);
    }
  }

  private void read() {
    byte[] bytes = new byte[256];
    try {
      while (pipe.read(bytes) > 0 && !closed) {
        dump();
      }
    } catch (IOException e) {
      if (!closed) {
        LOG.warn("the named pipe '{}' cannot be read any more", path, e);
      }
    }
  }

  private void dump() {
    recorder.event("control_pipe", "a dump was asked for");
    try {
      LOG.warn("a dump was asked for through {}; it is in {}", path, recorder.dump(null));
    } catch (IOException | RuntimeException e) {
      LOG.warn("the dump that was asked for through {} could not be written", path, e);
    }
  }

  @Override
  public void close() throws IOException {
    closed = true;
    pipe.write('\n'); // ends the read
    try {
      thread.join(CLOSE_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    pipe.close();
    Files.deleteIfExists(path);
  }
}
