package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last calls of one rank, in a ring. Thread-safe. Recording takes no lock; dumps read while
 * calls go on.
 *
 * <p>A dump has the fields of PyTorch's (schema 2.10), and beside them what happened to the rank
 * and its groups ({@code weft_events}).
 */
public final class FlightRecorder {
  /** The schema of the dumps. */
  public static final String VERSION = "2.10";

  private static final Logger LOG = LoggerFactory.getLogger(FlightRecorder.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MAX_EVENTS = 1_000;

  private final int rank;
  private final FlightRecorderConfig config;
  // Wall clock from the monotonic one: cheap, and never backwards.
  private final long epoch = System.currentTimeMillis() * 1_000_000 - System.nanoTime();
  private final AtomicLong ids = new AtomicLong();
  private final List<GroupLog> groups = new ArrayList<>();
  private final Deque<Map<String, @Nullable Object>> events = new ArrayDeque<>();
  private final AtomicBoolean failureDumped = new AtomicBoolean();
  private volatile @Nullable AtomicReferenceArray<RecordedCall> ring;

  /** Makes a recorder of a rank. */
  public FlightRecorder(int rank, FlightRecorderConfig config) {
    this.rank = rank;
    this.config = config;
  }

  /** False when the buffer size is 0. */
  public boolean isEnabled() {
    return config.bufferSize() > 0;
  }

  /**
   * The log of a group, made anew.
   *
   * @param library what stands before the operation's name in dumps, such as {@code nccl}
   */
  public GroupLog group(
      String name, String description, List<Integer> ranks, int groupRank, String library) {
    synchronized (groups) {
      GroupLog log =
          new GroupLog(this, groups.size(), name, description, ranks, groupRank, library);
      groups.add(log);
      return log;
    }
  }

  /** Notes something that is no call: a group was made or destroyed, a peer failed. */
  public void event(String kind, String text) {
    if (!isEnabled()) {
      return;
    }
    Map<String, @Nullable Object> event = new LinkedHashMap<>();
    event.put("time_ns", now());
    event.put("kind", kind);
    event.put("text", text);
    synchronized (events) {
      if (events.size() == MAX_EVENTS) {
        Map<String, @Nullable Object> unused = events.removeFirst();
      }
      events.addLast(event);
    }
  }

  long nextId() {
    return ids.getAndIncrement();
  }

  long now() {
    return epoch + System.nanoTime();
  }

  /** Holds the stack; its text is made only when a dump asks for it. */
  @Nullable Throwable stack() {
    return config.stacks() ? new CallSite() : null;
  }

  void keep(RecordedCall call) {
    AtomicReferenceArray<RecordedCall> r = ring;
    if (r == null) {
      r = makeRing();
    }
    r.lazySet((int) (call.recordId() % r.length()), call);
  }

  private synchronized AtomicReferenceArray<RecordedCall> makeRing() {
    AtomicReferenceArray<RecordedCall> r = ring;
    if (r == null) {
      r = new AtomicReferenceArray<>(config.bufferSize());
      ring = r;
    }
    return r;
  }

  /** The calls that are kept, oldest first. */
  public List<RecordedCall> calls() {
    List<RecordedCall> out = new ArrayList<>();
    AtomicReferenceArray<RecordedCall> r = ring;
    for (int i = 0; r != null && i < r.length(); i++) {
      RecordedCall call = r.get(i);
      if (call != null) {
        out.add(call);
      }
    }
    out.sort(Comparator.comparingLong(RecordedCall::recordId));
    return out;
  }

  /** What a dump holds: maps, lists, text, numbers and booleans. */
  public Map<String, @Nullable Object> snapshot() {
    Map<String, @Nullable Object> out = new LinkedHashMap<>();
    out.put("version", VERSION);
    out.put("comm_lib_version", "weft");
    Map<String, @Nullable Object> configs = new LinkedHashMap<>();
    Map<String, @Nullable Object> status = new LinkedHashMap<>();
    synchronized (groups) {
      for (GroupLog g : groups) {
        Map<String, @Nullable Object> one = new LinkedHashMap<>();
        one.put("name", g.name());
        one.put("desc", g.description());
        one.put("ranks", g.ranks().toString());
        configs.put(g.name(), one);
        Map<String, @Nullable Object> last = new LinkedHashMap<>();
        last.put("last_enqueued_collective", g.lastEnqueued() == 0 ? -1 : g.lastEnqueued());
        last.put("last_started_collective", g.lastStarted());
        last.put("last_completed_collective", g.lastCompleted());
        status.put(String.valueOf(g.id()), last);
      }
    }
    out.put("pg_config", configs);
    out.put("pg_status", status);
    out.put(
        "entries",
        calls().stream()
            .filter(c -> !config.onlyActive() || c.isActive())
            .map(RecordedCall::describe)
            .toList());
    out.put("weft_rank", (long) rank);
    synchronized (events) {
      out.put("weft_events", new ArrayList<>(events));
    }
    return out;
  }

  /** A dump as JSON text, which {@code weft fr} reads from files that end in {@code .json}. */
  public String toJson() {
    return JSON.valueToTree(snapshot()).toString();
  }

  /**
   * Writes a dump as a pickle.
   *
   * @param prefix the file name but for the rank's digits; null for the configured one
   * @return the pickle's path
   */
  public Path dump(@Nullable String prefix) throws IOException {
    Path file = prefix == null ? config.dumpFile(rank) : Path.of(prefix + rank);
    DumpFiles.write(file, snapshot());
    return file;
  }

  /**
   * Writes a dump for the first failure of this rank, if that is wanted; a failure to write is
   * logged, as the failure itself matters more.
   *
   * @param explicitOnly whether only a configured prefix counts, not the default place
   */
  public void dumpForFailure(Throwable cause, boolean explicitOnly) {
    if (!isEnabled()
        || !config.dumpOnFailure()
        || (explicitOnly && config.prefix() == null)
        || !failureDumped.compareAndSet(false, true)) {
      return;
    }
    event("failure", cause.toString());
    try {
      Path file = dump(null);
      LOG.warn(
          "rank {} wrote its flight recorder to {} ('weft fr {}' reads the dumps of all ranks)",
          rank,
          file,
          file.toAbsolutePath().getParent());
    } catch (IOException | RuntimeException e) {
      LOG.warn("rank {} could not write its flight recorder", rank, e);
    }
  }

  /** Where a call was made. */
  private static final class CallSite extends Throwable {
    private static final long serialVersionUID = 1L;

    CallSite() {
      super(null, null, false, true);
    }
  }
}
