package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaDeviceGetStreamPriorityRange;
import static org.bytedeco.cuda.global.cudart.cudaErrorNotReady;
import static org.bytedeco.cuda.global.cudart.cudaLaunchHostFunc;
import static org.bytedeco.cuda.global.cudart.cudaStreamCreateWithPriority;
import static org.bytedeco.cuda.global.cudart.cudaStreamDestroy;
import static org.bytedeco.cuda.global.cudart.cudaStreamNonBlocking;
import static org.bytedeco.cuda.global.cudart.cudaStreamQuery;
import static org.bytedeco.cuda.global.cudart.cudaStreamSynchronize;
import static org.bytedeco.cuda.global.cudart.cudaStreamWaitEvent;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.cudaHostFn_t;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * A queue of work on a device. Work of one stream is done in order, work of several is not unless
 * an event orders it. Each thread has a current stream on each device, which kernels and copies go
 * to: the device's default stream, until {@link #use} says otherwise. Thread-safe.
 *
 * <p>No stream waits for another implicitly: all are non-blocking, the default one, too.
 */
public final class CudaStream implements AutoCloseable {
  private static final int POOL = 32;
  private static final List<@Nullable Streams> DEVICES = new ArrayList<>();
  private static final AtomicInteger IDS = new AtomicInteger();

  private final int device;
  private final int id = IDS.getAndIncrement();
  private final boolean highPriority;
  private final boolean shared;
  private final CUstream_st handle = new CUstream_st();
  private boolean closed;

  /** The shared streams of one device. */
  private static final class Streams {
    final CudaStream usual;
    final @Nullable CudaStream[] low = new CudaStream[POOL];
    final @Nullable CudaStream[] high = new CudaStream[POOL];
    int nextLow;
    int nextHigh;

    Streams(int device) {
      usual = new CudaStream(device, false, true);
    }
  }

  private CudaStream(int device, boolean highPriority, boolean shared) {
    Cuda.check(device);
    CudaThread.bind(device);
    this.device = device;
    this.highPriority = highPriority;
    this.shared = shared;
    int[] least = {0};
    int[] greatest = {0};
    CudaCheck.runtime(
        "cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(least, greatest));
    CudaCheck.runtime(
        "cudaStreamCreateWithPriority",
        cudaStreamCreateWithPriority(
            handle, cudaStreamNonBlocking, highPriority ? greatest[0] : least[0]));
  }

  /** A stream of one's own; close it when its work is done. */
  public static CudaStream create(int device, boolean highPriority) {
    return new CudaStream(device, highPriority, false);
  }

  /** The stream that threads use on a device unless told otherwise. */
  public static CudaStream defaultStream(int device) {
    synchronized (DEVICES) {
      return streams(device).usual;
    }
  }

  /** One of 32 shared streams of a device and priority, in turn. */
  public static CudaStream fromPool(int device, boolean highPriority) {
    synchronized (DEVICES) {
      Streams s = streams(device);
      @Nullable CudaStream[] pool = highPriority ? s.high : s.low;
      int at = (highPriority ? s.nextHigh++ : s.nextLow++) % POOL;
      CudaStream stream = pool[at];
      if (stream == null) {
        stream = new CudaStream(device, highPriority, true);
        pool[at] = stream;
      }
      return stream;
    }
  }

  private static Streams streams(int device) {
    Cuda.check(device);
    while (DEVICES.size() <= device) {
      DEVICES.add(null);
    }
    Streams s = DEVICES.get(device);
    if (s == null) {
      s = new Streams(device);
      DEVICES.set(device, s);
    }
    return s;
  }

  /** This thread's current stream on its current device. */
  public static CudaStream current() {
    CudaThread thread = CudaThread.current();
    return thread.stream(thread.device());
  }

  /** This thread's current stream on a device. */
  public static CudaStream current(int device) {
    return CudaThread.current().stream(device);
  }

  /** Puts the former current stream back. */
  public interface InUse extends AutoCloseable {
    @Override
    void close();
  }

  /** Makes this the current stream of its device on this thread until the result is closed. */
  public InUse use() {
    CudaThread thread = CudaThread.current();
    CudaStream before = thread.stream(device);
    thread.setStream(this);
    return () -> CudaThread.current().setStream(before);
  }

  /** The binding's handle, for calls of CUDA's libraries. */
  public CUstream_st handle() {
    return handle;
  }

  /** The device it belongs to. */
  public int device() {
    return device;
  }

  /** A number of its own in this process. */
  public int id() {
    return id;
  }

  /** Whether its work goes before that of other streams. */
  public boolean isHighPriority() {
    return highPriority;
  }

  /**
   * Waits on the host until all work given so far is done.
   *
   * @throws IndexOutOfBoundsException if some of it met a position out of range
   */
  public void synchronize() {
    CudaThread.bind(device);
    CudaCheck.runtime("cudaStreamSynchronize", cudaStreamSynchronize(handle));
    CudaFaults.check(device);
  }

  /** True when all work given so far is done; never waits. */
  public boolean isDone() {
    CudaThread.bind(device);
    int code = cudaStreamQuery(handle);
    if (code == cudaErrorNotReady) {
      int unused = cudart.cudaGetLastError();
      return false;
    }
    CudaCheck.runtime("cudaStreamQuery", code);
    return true;
  }

  /** Work given from now on waits on the device for what an event marks; the host does not. */
  public void waitFor(CudaEvent event) {
    CudaThread.bind(device);
    CudaCheck.runtime("cudaStreamWaitEvent", cudaStreamWaitEvent(handle, event.handle(), 0));
  }

  /** Work given from now on waits on the device for what another stream has been given so far. */
  public void waitFor(CudaStream other) {
    if (other != this) {
      try (CudaEvent event = new CudaEvent(other.device, false)) {
        waitFor(event.record(other));
      }
    }
  }

  /**
   * Runs code on a thread of the driver when the work given so far is done, and holds up later work
   * of the stream until then. The code must not call CUDA.
   */
  public void onHost(Runnable code) {
    CudaThread.bind(device);
    long ticket = HostCalls.add(code);
    int status = cudaLaunchHostFunc(handle, HostCalls.INSTANCE, new RawPointer(ticket));
    if (status != 0) {
      @Nullable Runnable unused = HostCalls.take(ticket);
      CudaCheck.runtime("cudaLaunchHostFunc", status);
    }
  }

  /** The one native callback; the pointer it gets is a ticket. */
  private static final class HostCalls extends cudaHostFn_t {
    static final HostCalls INSTANCE = new HostCalls();
    private static final Map<Long, Runnable> CODE = new ConcurrentHashMap<>();
    private static final AtomicLong TICKETS = new AtomicLong(1);

    static long add(Runnable code) {
      long ticket = TICKETS.getAndIncrement();
      CODE.put(ticket, code);
      return ticket;
    }

    static @Nullable Runnable take(long ticket) {
      return CODE.remove(ticket);
    }

    @Override
    public void call(Pointer ticket) {
      @Nullable Runnable code = take(ticket.address());
      if (code != null) {
        code.run();
      }
    }
  }

  @Override
  public void close() {
    if (shared) {
      throw new IllegalStateException("a shared stream is not closed by its users");
    }
    synchronized (this) {
      if (!closed) {
        closed = true;
        CudaThread.bind(device);
        CudaCheck.runtime("cudaStreamDestroy", cudaStreamDestroy(handle));
      }
    }
  }

  @Override
  public String toString() {
    return "stream " + id + " of cuda:" + device;
  }
}
