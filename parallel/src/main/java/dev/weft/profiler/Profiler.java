package dev.weft.profiler;

import dev.weft.c10d.RankContext;
import dev.weft.tensor.cuda.CudaMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Records what a rank does in some steps of a run, as a trace that Perfetto opens: every operator
 * and collective of the thread that made the profiler (and of those that call {@link #addThread}),
 * device time by CUDA stream, and memory. Made, stepped and closed by one thread.
 *
 * <pre>{@code
 * try (Profiler profiler = Profiler.start(Path.of("traces"), Schedule.once(2, 1, 3))) {
 *   for (Batch batch : batches) {
 *     train(batch);
 *     profiler.step();
 *   }
 * }
 * }</pre>
 *
 * <p>Each rank writes {@code rankN.trace.json.gz}, anew at the end of each repetition. All ranks
 * make their profilers and step alike: where a repetition begins they compare clocks over the
 * store. Outside the recorded steps nothing is installed.
 */
public final class Profiler implements AutoCloseable {
  private final Path file;
  private final Schedule schedule;
  private final @Nullable RankContext context;
  private final DeviceTable devices = new DeviceTable();
  private final List<Window> windows = new ArrayList<>();
  private final List<Recorder> others = new ArrayList<>();
  private volatile @Nullable Recorder recorder;
  private ClockOffset clock = ClockOffset.NONE;
  private long step;
  private long windowStart;
  private long windowStep;
  private long stepStart;
  private boolean keeping;
  private boolean closed;

  private Profiler(Path folder, Schedule schedule) {
    this.schedule = schedule;
    this.context = RankContext.find().orElse(null);
    this.file = folder.resolve("rank" + rank() + ".trace.json.gz");
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw new UncheckedIOException("traces cannot be written to folder " + folder + ": " + e, e);
    }
    beginStep();
  }

  /**
   * Begins with step 0.
   *
   * @param folder where the traces of all ranks go; made where it is not there
   * @param schedule which steps are kept
   */
  public static Profiler start(Path folder, Schedule schedule) {
    return new Profiler(folder, schedule);
  }

  private int rank() {
    return context == null ? 0 : context.rank();
  }

  /** The file of this rank; there once a repetition has ended. */
  public Path file() {
    return file;
  }

  /** The step that is under way, from 0. */
  public long stepNumber() {
    return step;
  }

  /** Ends a step and begins the next. The last step of a repetition writes the file. */
  public void step() {
    if (closed) {
      throw new IllegalStateException("the profiler has been closed after step " + step);
    }
    endStep();
    if (keeping && schedule.endsCycle(step)) {
      endWindow();
    }
    step++;
    beginStep();
  }

  private void endStep() {
    Recorder r = recorder;
    if (r != null && keeping) {
      r.mark("step " + step, stepStart, System.nanoTime());
    }
  }

  private void beginStep() {
    Schedule.Phase phase = schedule.phase(step);
    if (phase == Schedule.Phase.WARMUP || phase == Schedule.Phase.ACTIVE) {
      if (schedule.beginsRecording(step)) {
        clock = context == null ? ClockOffset.NONE : ClockOffset.measure(context);
        recorder = new Recorder(devices);
        switchAll(true);
      }
      if (phase == Schedule.Phase.ACTIVE && !keeping) {
        devices.all().forEach(DeviceLanes::restart);
        allRecorders().forEach(r -> r.take());
        keeping = true;
        windowStep = step;
        windowStart = System.nanoTime();
      }
    }
    stepStart = System.nanoTime();
  }

  private List<Recorder> allRecorders() {
    List<Recorder> all = new ArrayList<>();
    if (recorder != null) {
      all.add(recorder);
    }
    synchronized (others) {
      all.addAll(others);
    }
    return all;
  }

  private void switchAll(boolean on) {
    allRecorders().forEach(r -> r.setOn(on));
  }

  private void endWindow() {
    long end = System.nanoTime();
    switchAll(false);
    List<Recorder.Notes> notes = new ArrayList<>();
    allRecorders().forEach(r -> notes.add(r.take()));
    Map<Integer, Long> deviceBytes = new LinkedHashMap<>();
    for (DeviceLanes lanes : devices.all()) {
      lanes.resolve();
      deviceBytes.put(lanes.device(), CudaMemory.stats(lanes.device()).allocatedBytes());
    }
    uninstall();
    keeping = false;
    windows.add(new Window(windowStep, step, windowStart, end, clock, notes, deviceBytes));
    int world = context == null ? 1 : context.worldSize();
    new TraceWriter(rank(), world, windows).write(file);
  }

  private void uninstall() {
    if (recorder != null) {
      recorder.uninstall();
      recorder = null;
    }
  }

  /** A named piece of the calling thread's time, which closing ends. */
  public interface Range extends AutoCloseable {
    @Override
    void close();
  }

  /** Names a piece of the time of the thread that made the profiler; nested ones lie inside. */
  public Range range(String name) {
    Recorder r = recorder;
    if (r == null) {
      return () -> {};
    }
    long start = System.nanoTime();
    return () -> r.mark(name, start, System.nanoTime());
  }

  /**
   * Records the calling thread, too, until the result is closed by it. Outside the recorded steps
   * each of its operator calls passes an interceptor that does nothing.
   */
  public Range addThread() {
    Recorder r = new Recorder(devices);
    synchronized (others) {
      others.add(r);
    }
    r.setOn(recorder != null);
    return r::uninstall;
  }

  /** The file, where one has been written. */
  public Optional<Path> written() {
    return windows.isEmpty() ? Optional.empty() : Optional.of(file);
  }

  /** Ends recording; a repetition that is not over is written as far as it came. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    if (keeping) {
      endStep();
      endWindow();
    }
    uninstall();
    devices.close();
  }
}
