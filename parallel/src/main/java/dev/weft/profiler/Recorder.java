package dev.weft.profiler;

import dev.weft.c10d.Backend;
import dev.weft.c10d.CollectiveCall;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Interceptor;
import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Notes what one thread calls. Used by its thread, but for {@link #take}, which any thread may
 * call.
 */
final class Recorder implements Interceptor {
  /** More calls than that are counted, and not kept. */
  static final int MOST_CALLS = 1_000_000;

  private static final String MESSAGE_LANE = "messages in ";

  /** A named piece of a thread's time. */
  record Mark(String name, long start, long end) {}

  /** Live bytes of the host at a time. */
  record MemorySample(long time, long bytes) {}

  /** What was noted. */
  record Notes(
      Thread thread,
      List<OpEvent> ops,
      List<Mark> marks,
      List<MemorySample> memory,
      long dropped) {}

  private final Thread thread = Thread.currentThread();
  private final DeviceTable devices;
  private final Dispatcher.Installed installed;
  private List<OpEvent> ops = new ArrayList<>();
  private List<Mark> marks = new ArrayList<>();
  private List<MemorySample> memory = new ArrayList<>();
  private long dropped;
  private long lastMemory = -1;
  private volatile boolean on;

  /** Installs itself on the calling thread. */
  Recorder(DeviceTable devices) {
    this.devices = devices;
    this.installed = Dispatcher.install(this);
  }

  void uninstall() {
    installed.close();
  }

  /** Begins or ends noting. */
  void setOn(boolean on) {
    this.on = on;
  }

  /** Hands over what was noted, and begins anew. */
  synchronized Notes take() {
    Notes notes = new Notes(thread, ops, marks, memory, dropped);
    ops = new ArrayList<>(ops.size());
    marks = new ArrayList<>();
    memory = new ArrayList<>();
    dropped = 0;
    lastMemory = -1;
    return notes;
  }

  synchronized void mark(String name, long start, long end) {
    if (on) {
      marks.add(new Mark(name, start, end));
    }
  }

  private synchronized boolean keep(OpEvent event) {
    if (ops.size() >= MOST_CALLS) {
      dropped++;
      return false;
    }
    ops.add(event);
    return true;
  }

  @Override
  public Tensor[] intercept(Call call) {
    if (!on) {
      return call.proceed();
    }
    OpEvent event =
        new OpEvent(call.op(), call.inputs(), Autograd.isInBackward(), System.nanoTime());
    if (!keep(event)) {
      return call.proceed();
    }
    CollectiveCall collective = CollectiveCall.of(call.attrs());
    if (collective != null && collective.group().isMember()) {
      return collective(call, collective, event);
    }
    DeviceLanes lanes = lanesOf(call);
    DeviceLanes.Span span = null;
    if (lanes != null) {
      span = lanes.begin(null);
      event.device = span;
    }
    try {
      return call.proceed();
    } finally {
      if (lanes != null && span != null) {
        lanes.finish(span);
      }
      event.end = System.nanoTime();
      if (call.depth() == 0) {
        sampleMemory(event.end);
      }
    }
  }

  /** Where a call runs a kernel on a GPU: that device's lanes. */
  private @Nullable DeviceLanes lanesOf(Call call) {
    Op.Form form = call.op().form();
    Tensor[] inputs = call.inputs();
    if (form == Op.Form.VIEW || form == Op.Form.COMPOSITE || inputs.length == 0) {
      return null;
    }
    Device device = inputs[0].device();
    return device.isCuda() && inputs[0].kind() == null ? devices.of(device.index()) : null;
  }

  private Tensor[] collective(Call call, CollectiveCall collective, OpEvent event) {
    ProcessGroup group = collective.group();
    Tensor[] inputs = call.inputs();
    Device device = inputs.length == 0 ? null : inputs[0].device();
    Backend backend = device == null || device.isMeta() ? null : group.backend(device);
    boolean async = collective.isAsync();
    DeviceLanes lanes = null;
    DeviceLanes.Span span = null;
    if (device != null && device.isCuda() && backend != null && backend.name().equals("nccl")) {
      lanes = devices.of(device.index());
      boolean message = Payload.isMessage(call.op().name());
      span = lanes.begin(message ? MESSAGE_LANE + group.name() : group.name());
    }
    Tensor[] outputs;
    try {
      outputs = call.proceed();
    } finally {
      event.end = System.nanoTime();
    }
    Work work = collective.work();
    CommEvent comm =
        new CommEvent(
            event,
            group,
            call.attrs().intAt(3),
            async,
            (Integer) call.attrs().get(2),
            work.sequenceNumber(),
            backend);
    event.comm = comm;
    if (lanes != null && span != null) {
      comm.device = span;
      if (async) {
        lanes.follow(comm, work);
      } else {
        lanes.finish(span);
      }
    }
    work.whenEnded(comm::end);
    if (async) {
      collective.replaceWork(new ObservedWork(work, comm, lanes));
    }
    return outputs;
  }

  private synchronized void sampleMemory(long time) {
    long bytes = HostMemory.liveBytes();
    if (bytes != lastMemory) {
      lastMemory = bytes;
      memory.add(new MemorySample(time, bytes));
    }
  }
}
