package dev.weft.c10d.debug;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A call that a flight recorder keeps. Its caller makes it and tells how it ends, in that order and
 * from any thread; dumps may read it meanwhile. It holds shapes, no tensors.
 */
public final class RecordedCall {
  private static final int MAX_FRAMES = 64;

  private final GroupLog group;
  private final long recordId;
  private final long opId;
  private final long collectiveSeq;
  private final long p2pSeq;
  private final String operation;
  private final int peer;
  private final boolean p2p;
  private final Shapes inputs;
  private final Shapes outputs;
  private final long timeoutMillis;
  private final long created;
  private final String threadName;
  private final long threadId;
  private final @Nullable Throwable stack;
  private volatile long started;
  private volatile long completed;
  private volatile boolean retired;
  private volatile @Nullable String failure;

  RecordedCall(
      GroupLog group,
      long recordId,
      long opId,
      long collectiveSeq,
      long p2pSeq,
      String operation,
      int peer,
      boolean p2p,
      Shapes inputs,
      Shapes outputs,
      long timeoutMillis,
      long created,
      @Nullable Throwable stack) {
    this.group = group;
    this.recordId = recordId;
    this.opId = opId;
    this.collectiveSeq = collectiveSeq;
    this.p2pSeq = p2pSeq;
    this.operation = operation;
    this.peer = peer;
    this.p2p = p2p;
    this.inputs = inputs;
    this.outputs = outputs;
    this.timeoutMillis = timeoutMillis;
    this.created = created;
    Thread thread = Thread.currentThread();
    this.threadName = thread.getName();
    this.threadId = thread.getId();
    this.stack = stack;
  }

  /** Shapes and element types of one side of a call. */
  record Shapes(long[][] sizes, DType[] dtypes) {
    static final Shapes NONE = new Shapes(new long[0][], new DType[0]);

    /** The shapes of tensors; {@code last} where it says the same. */
    static Shapes of(List<StridedTensor> tensors, Shapes last) {
      int n = tensors.size();
      if (n == 0) {
        return NONE;
      }
      if (last.areOf(tensors)) {
        return last;
      }
      long[][] sizes = new long[n][];
      DType[] dtypes = new DType[n];
      for (int i = 0; i < n; i++) {
        StridedTensor t = tensors.get(i);
        sizes[i] = t.shape();
        dtypes[i] = t.dtype();
      }
      return new Shapes(sizes, dtypes);
    }

    private boolean areOf(List<StridedTensor> tensors) {
      boolean same = tensors.size() == sizes.length;
      for (int i = 0; i < sizes.length && same; i++) {
        StridedTensor t = tensors.get(i);
        same = t.dtype() == dtypes[i] && Arrays.equals(t.shape(), sizes[i]);
      }
      return same;
    }

    private List<List<Long>> sizeLists() {
      List<List<Long>> out = new ArrayList<>();
      for (long[] size : sizes) {
        List<Long> one = new ArrayList<>();
        for (long s : size) {
          one.add(s);
        }
        out.add(one);
      }
      return out;
    }

    private List<String> names() {
      List<String> out = new ArrayList<>();
      for (DType d : dtypes) {
        out.add(aten(d));
      }
      return out;
    }
  }

  /** Tells that the data began to move. */
  public void start() {
    started = group.now();
    group.started(collectiveSeq);
  }

  /** Tells that it ended well. */
  public void complete() {
    completed = group.now();
    retired = true;
    group.completed(collectiveSeq);
  }

  /** Tells that it failed. */
  public void fail(Throwable cause) {
    failure = cause.toString();
    retired = true;
  }

  /** True until it has ended, well or not. */
  public boolean isActive() {
    return !retired;
  }

  /** Why it failed, or null unless it has. */
  @Nullable String failure() {
    return failure;
  }

  /** Its number among the group's collectives, or messages. */
  public long sequenceNumber() {
    return p2p ? p2pSeq : collectiveSeq;
  }

  /** The operation alone, such as {@code all_reduce} or {@code send}. */
  public String operation() {
    return operation;
  }

  /** The operation's name in dumps, such as {@code all_reduce}; messages name their two ranks. */
  public String name() {
    if (!p2p || peer < 0) {
      return operation;
    }
    return operation + " " + group.rank() + (operation.equals("send") ? "->" : "<-") + peer;
  }

  /** How long it has been under way, in nanoseconds. */
  public long ageNanos() {
    return group.now() - created;
  }

  /** When it was made, in nanoseconds on the recorder's clock: the wall clock, never backwards. */
  public long created() {
    return created;
  }

  /**
   * From the call to its end, in nanoseconds, or -1 unless it has ended well. Waiting for other
   * ranks is part of it.
   */
  public long durationNanos() {
    long ended = completed;
    return ended == 0 ? -1 : ended - created;
  }

  /** How long it may take, in milliseconds. */
  public long timeoutMillis() {
    return timeoutMillis;
  }

  /** The name of its group. */
  public String groupName() {
    return group.name();
  }

  /** The global ranks of its group. */
  public List<Integer> groupRanks() {
    return group.ranks();
  }

  GroupLog group() {
    return group;
  }

  long recordId() {
    return recordId;
  }

  /** True of a send, a receive or a batch of them, false of a collective. */
  public boolean isP2p() {
    return p2p;
  }

  /** The entry of a dump. */
  Map<String, @Nullable Object> describe() {
    Map<String, @Nullable Object> out = new LinkedHashMap<>();
    List<Map<String, @Nullable Object>> frames = frames();
    if (frames != null) {
      out.put("frames", frames);
    }
    out.put("record_id", recordId);
    out.put("pg_id", (long) group.id());
    out.put("process_group", new Tuple(List.of(group.name(), group.description())));
    out.put("thread_name", threadName);
    out.put("thread_id", String.valueOf(threadId));
    out.put("collective_seq_id", collectiveSeq);
    out.put("p2p_seq_id", p2pSeq);
    out.put("op_id", opId);
    out.put("profiling_name", group.library() + ":" + name());
    out.put("time_created_ns", created);
    out.put("input_sizes", inputs.sizeLists());
    out.put("input_dtypes", inputs.names());
    out.put("output_sizes", outputs.sizeLists());
    out.put("output_dtypes", outputs.names());
    long begun = started;
    long ended = completed;
    out.put("state", ended != 0 ? "completed" : begun != 0 ? "started" : "scheduled");
    out.put("time_discovered_started_ns", begun == 0 ? null : begun);
    out.put("time_discovered_completed_ns", ended == 0 ? null : ended);
    if (begun != 0 && ended != 0) {
      out.put("duration_ms", (ended - begun) / 1e6);
    }
    out.put("retired", retired);
    out.put("timeout_ms", timeoutMillis);
    out.put("is_p2p", p2p);
    String why = failure;
    if (why != null) {
      out.put("weft_failure", why);
    }
    return out;
  }

  /** The stack from the caller of the collective outwards. */
  private @Nullable List<Map<String, @Nullable Object>> frames() {
    Throwable captured = stack;
    if (captured == null) {
      return null;
    }
    List<Map<String, @Nullable Object>> out = new ArrayList<>();
    for (StackTraceElement frame : captured.getStackTrace()) {
      if (out.isEmpty() && isOurs(frame.getClassName())) {
        continue;
      }
      Map<String, @Nullable Object> one = new LinkedHashMap<>();
      one.put("name", frame.getClassName() + "." + frame.getMethodName());
      one.put("filename", String.valueOf(frame.getFileName()));
      one.put("line", (long) frame.getLineNumber());
      out.add(one);
      if (out.size() == MAX_FRAMES) {
        break;
      }
    }
    return out;
  }

  private static boolean isOurs(String className) {
    if (className.startsWith("dev.weft.tensor.op.")
        || className.equals(GroupLog.class.getName())
        || className.equals(FlightRecorder.class.getName())) {
      return true;
    }
    int outer = className.indexOf('$');
    return switch (outer < 0 ? className : className.substring(0, outer)) {
      case "dev.weft.c10d.CallRecording",
          "dev.weft.c10d.CollectiveOps",
          "dev.weft.c10d.Collectives",
          "dev.weft.c10d.Coalesced",
          "dev.weft.c10d.ProcessGroup",
          "dev.weft.c10d.Distributed",
          "dev.weft.c10d.ObjectCollectives",
          "dev.weft.c10d.SparseReduction" ->
          true;
      default -> false;
    };
  }

  private static String aten(DType dtype) {
    return switch (dtype) {
      case FLOAT32 -> "Float";
      case FLOAT64 -> "Double";
      case FLOAT16 -> "Half";
      case BFLOAT16 -> "BFloat16";
      case INT64 -> "Long";
      case INT32 -> "Int";
      case INT16 -> "Short";
      case INT8 -> "Char";
      case UINT8 -> "Byte";
      case BOOL -> "Bool";
    };
  }
}
