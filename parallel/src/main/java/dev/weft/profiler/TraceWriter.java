package dev.weft.profiler;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.c10d.Backend;
import dev.weft.tensor.DType;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Writes one rank's trace in the Trace Event Format (JSON object form, gzip). The process is the
 * rank; the lanes are threads, then groups' collectives, then CUDA streams. One thread.
 *
 * <p>Times are microseconds since the clock reading {@code weft.clock.start_ns}, of the rank's own
 * clock; {@code weft.clock.offset_ns} is to be added for rank 0's.
 */
final class TraceWriter {
  private static final JsonFactory JSON = new JsonFactory();

  private final int rank;
  private final int worldSize;
  private final List<Window> windows;
  private final long zero;
  private final Lanes lanes = new Lanes();
  private long flows;

  TraceWriter(int rank, int worldSize, List<Window> windows) {
    this.rank = rank;
    this.worldSize = worldSize;
    this.windows = windows;
    this.zero = windows.get(0).start();
  }

  /** Writes it; a reader never sees half of it. */
  void write(Path file) {
    Path part = file.resolveSibling(file.getFileName() + ".part");
    try {
      try (JsonGenerator out =
          JSON.createGenerator(
              new BufferedOutputStream(new GZIPOutputStream(Files.newOutputStream(part))))) {
        out.writeStartObject();
        out.writeStringField("displayTimeUnit", "ms");
        header(out);
        out.writeArrayFieldStart("traceEvents");
        for (Window w : windows) {
          window(out, w);
        }
        names(out);
        out.writeEndArray();
        out.writeEndObject();
      }
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new UncheckedIOException("the trace cannot be written to " + file + ": " + e, e);
    }
  }

  private void header(JsonGenerator out) throws IOException {
    ClockOffset clock = windows.get(0).clock();
    out.writeObjectFieldStart("weft");
    out.writeNumberField("version", 1);
    out.writeNumberField("rank", rank);
    out.writeNumberField("world_size", worldSize);
    out.writeNumberField("pid", ProcessHandle.current().pid());
    out.writeObjectFieldStart("clock");
    out.writeNumberField("start_ns", zero);
    out.writeNumberField("offset_ns", clock.nanos());
    out.writeNumberField("uncertainty_ns", clock.uncertaintyNanos());
    out.writeEndObject();
    out.writeArrayFieldStart("windows");
    for (Window w : windows) {
      out.writeStartObject();
      out.writeNumberField("first_step", w.firstStep());
      out.writeNumberField("last_step", w.lastStep());
      number(out, "start_us", micros(w.start(), w));
      number(out, "end_us", micros(w.end(), w));
      out.writeNumberField(
          "dropped_calls", w.threads().stream().mapToLong(Recorder.Notes::dropped).sum());
      out.writeEndObject();
    }
    out.writeEndArray();
    out.writeEndObject();
  }

  /** Microseconds with three decimals; later windows are brought to the first one's clock. */
  private String micros(long nanos, Window w) {
    long drift = w.clock().nanos() - windows.get(0).clock().nanos();
    return Micros.text(nanos - zero + drift);
  }

  private void window(JsonGenerator out, Window w) throws IOException {
    for (Recorder.Notes thread : w.threads()) {
      int tid = lanes.thread(thread.thread());
      for (Recorder.Mark mark : thread.marks()) {
        begin(out, "X", mark.name(), mark.name().startsWith("step ") ? "step" : "range", tid);
        span(out, mark.start(), mark.end(), w);
        out.writeEndObject();
      }
      for (OpEvent op : thread.ops()) {
        op(out, op, tid, w);
      }
      memory(out, thread, w);
    }
    w.deviceBytes()
        .forEach(
            (device, bytes) ->
                unchecked(() -> counter(out, "memory cuda:" + device, w.end(), bytes, w)));
    collectives(out, w);
  }

  private interface Writing {
    void run() throws IOException;
  }

  private static void unchecked(Writing body) {
    try {
      body.run();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void op(JsonGenerator out, OpEvent op, int tid, Window w) throws IOException {
    long end = op.end == 0 ? w.end() : op.end;
    CommEvent comm = op.comm;
    begin(out, "X", op.op.name(), comm == null ? "op" : "comm_launch", tid);
    span(out, op.start, end, w);
    out.writeObjectFieldStart("args");
    tensors(out, op.shapes, op.dtypes);
    out.writeNumberField("bytes", op.bytes());
    if (op.backward) {
      out.writeBooleanField("backward", true);
    }
    if (comm != null) {
      out.writeBooleanField("async", comm.async);
    }
    out.writeEndObject();
    out.writeEndObject();
    DeviceLanes.Span device = op.device;
    if (device != null && device.end() > 0) {
      int lane = lanes.stream(device.lane);
      begin(out, "X", op.op.name(), "kernel", lane);
      span(out, device.start(), device.end(), w);
      out.writeObjectFieldStart("args");
      tensors(out, op.shapes, op.dtypes);
      out.writeEndObject();
      out.writeEndObject();
      long flow = flows++;
      flow(out, "s", flow, tid, op.start, w);
      flow(out, "f", flow, lane, device.start(), w);
    }
  }

  private void collectives(JsonGenerator out, Window w) throws IOException {
    for (Recorder.Notes thread : w.threads()) {
      int tid = lanes.thread(thread.thread());
      for (OpEvent op : thread.ops()) {
        if (op.comm != null) {
          collective(out, op.comm, tid, w);
        }
      }
    }
  }

  private void collective(JsonGenerator out, CommEvent comm, int tid, Window w) throws IOException {
    DeviceLanes.Span device = comm.device;
    long start = comm.launched;
    long end = comm.ended();
    boolean underWay = end == 0;
    if (underWay) {
      end = Math.max(w.end(), start);
    }
    int lane;
    if (device != null && device.end() > 0) {
      start = device.start();
      end = device.end();
      underWay = false;
      lane = lanes.stream(device.lane);
    } else {
      Lanes.Place place = lanes.collective(comm, start, end);
      lane = place.lane();
      start = place.start();
    }
    begin(out, "X", comm.operation, "comm", lane);
    span(out, start, end, w);
    describe(out, comm, start, end, underWay);
    out.writeEndObject();
    long flow = flows++;
    flow(out, "s", flow, tid, comm.launched, w);
    List<CommEvent.Wait> waits = comm.waits();
    flow(out, waits.isEmpty() ? "f" : "t", flow, lane, start, w);
    for (int i = 0; i < waits.size(); i++) {
      CommEvent.Wait wait = waits.get(i);
      int waiter = lanes.thread(wait.thread());
      begin(out, "X", "wait for " + comm.operation, "comm_wait", waiter);
      span(out, wait.start(), wait.end(), w);
      out.writeObjectFieldStart("args");
      out.writeStringField("group", comm.group.name());
      out.writeNumberField("seq", comm.sequence);
      out.writeEndObject();
      out.writeEndObject();
      if (i == 0) {
        flow(out, "f", flow, waiter, wait.start(), w);
      }
    }
  }

  private void describe(JsonGenerator out, CommEvent comm, long start, long end, boolean underWay)
      throws IOException {
    out.writeObjectFieldStart("args");
    out.writeStringField("group", comm.group.name());
    out.writeStringField("description", comm.group.description());
    out.writeArrayFieldStart("ranks");
    for (int r : comm.group.ranks()) {
      out.writeNumber(r);
    }
    out.writeEndArray();
    out.writeNumberField("seq", comm.sequence);
    if (comm.peer != null) {
      out.writeNumberField("peer", comm.group.globalRank(comm.peer));
    }
    out.writeBooleanField("async", comm.async);
    out.writeNumberField("bytes", comm.bytes);
    tensors(out, comm.shapes, comm.dtypes);
    Backend backend = comm.backend;
    if (backend != null) {
      out.writeStringField("backend", backend.name());
      if (!backend.algorithm().isEmpty()) {
        out.writeStringField("algorithm", backend.algorithm());
      }
    }
    if (underWay) {
      out.writeStringField("state", "under way");
    } else if (comm.failure() != null) {
      out.writeStringField("state", "failed: " + comm.failure());
    } else if (end > start && comm.bytes > 0) {
      double rate = (double) comm.bytes / (end - start); // B/ns is GB/s
      out.writeNumberField("algorithm_bandwidth_gb_per_s", rounded(rate));
      out.writeNumberField(
          "bus_bandwidth_gb_per_s",
          rounded(rate * Payload.busFactor(comm.operation, comm.group.size())));
    }
    out.writeNumberField("launched_us", Double.parseDouble(Micros.text(comm.launched - zero)));
    DeviceLanes.Span device = comm.device;
    if (device != null && device.end() > 0) {
      out.writeNumberField("reached_us", Double.parseDouble(Micros.text(device.reached() - zero)));
    }
    out.writeEndObject();
  }

  private static double rounded(double value) {
    return Math.round(value * 1e4) / 1e4;
  }

  private static void tensors(JsonGenerator out, long[][] shapes, DType[] dtypes)
      throws IOException {
    out.writeArrayFieldStart("tensors");
    for (int i = 0; i < shapes.length; i++) {
      StringBuilder text = new StringBuilder(dtypes[i].toString()).append('[');
      for (int k = 0; k < shapes[i].length; k++) {
        text.append(k == 0 ? "" : ", ").append(shapes[i][k]);
      }
      out.writeString(text.append(']').toString());
    }
    out.writeEndArray();
  }

  private void memory(JsonGenerator out, Recorder.Notes thread, Window w) throws IOException {
    for (Recorder.MemorySample s : thread.memory()) {
      counter(out, "memory cpu", s.time(), s.bytes(), w);
    }
  }

  private void counter(JsonGenerator out, String name, long time, long bytes, Window w)
      throws IOException {
    begin(out, "C", name, "memory", 0);
    number(out, "ts", micros(time, w));
    out.writeObjectFieldStart("args");
    out.writeNumberField("bytes", bytes);
    out.writeEndObject();
    out.writeEndObject();
  }

  private void begin(JsonGenerator out, String kind, String name, String category, int lane)
      throws IOException {
    out.writeStartObject();
    out.writeStringField("ph", kind);
    out.writeStringField("name", name);
    out.writeStringField("cat", category);
    out.writeNumberField("pid", rank);
    out.writeNumberField("tid", lane);
  }

  private void span(JsonGenerator out, long start, long end, Window w) throws IOException {
    number(out, "ts", micros(start, w));
    number(out, "dur", Micros.text(end - start));
  }

  private void flow(JsonGenerator out, String kind, long id, int lane, long time, Window w)
      throws IOException {
    begin(out, kind, "flow", "flow", lane);
    out.writeNumberField("id", ((long) rank << 32) + id);
    number(out, "ts", micros(time, w));
    if (kind.equals("f")) {
      out.writeStringField("bp", "e");
    }
    out.writeEndObject();
  }

  private static void number(JsonGenerator out, String field, String decimal) throws IOException {
    out.writeFieldName(field);
    out.writeNumber(decimal);
  }

  private void names(JsonGenerator out) throws IOException {
    name(out, "process_name", null, "rank " + rank);
    sort(out, "process_sort_index", null, rank);
    for (Lanes.Lane lane : lanes.all()) {
      name(out, "thread_name", lane.id(), lane.name());
      sort(out, "thread_sort_index", lane.id(), lane.id());
    }
  }

  private void name(JsonGenerator out, String what, @Nullable Integer lane, String name)
      throws IOException {
    begin(out, "M", what, "__metadata", lane == null ? 0 : lane);
    out.writeObjectFieldStart("args");
    out.writeStringField("name", name);
    out.writeEndObject();
    out.writeEndObject();
  }

  private void sort(JsonGenerator out, String what, @Nullable Integer lane, int index)
      throws IOException {
    begin(out, "M", what, "__metadata", lane == null ? 0 : lane);
    out.writeObjectFieldStart("args");
    out.writeNumberField("sort_index", index);
    out.writeEndObject();
    out.writeEndObject();
  }
}
