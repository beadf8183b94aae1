package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaErrorNotReady;
import static org.bytedeco.cuda.global.cudart.cudaEventCreateWithFlags;
import static org.bytedeco.cuda.global.cudart.cudaEventDefault;
import static org.bytedeco.cuda.global.cudart.cudaEventDestroy;
import static org.bytedeco.cuda.global.cudart.cudaEventDisableTiming;
import static org.bytedeco.cuda.global.cudart.cudaEventElapsedTime;
import static org.bytedeco.cuda.global.cudart.cudaEventQuery;
import static org.bytedeco.cuda.global.cudart.cudaEventRecord;
import static org.bytedeco.cuda.global.cudart.cudaEventSynchronize;

import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.global.cudart;

/**
 * A mark in a stream's work. Any thread may ask or wait; recording is for one thread at a time.
 * Close it when done; no cleaner does, since no CUDA call belongs there.
 */
public final class CudaEvent implements AutoCloseable {
  private final int device;
  private final boolean timing;
  private final CUevent_st handle = new CUevent_st();
  private volatile boolean closed;

  /** An event of a device. */
  public CudaEvent(int device, boolean timing) {
    this.device = device;
    this.timing = timing;
    CudaThread.bind(device);
    CudaCheck.runtime(
        "cudaEventCreateWithFlags",
        cudaEventCreateWithFlags(handle, timing ? cudaEventDefault : cudaEventDisableTiming));
  }

  /** An event without times, of the current device. */
  public CudaEvent() {
    this(Cuda.currentDevice(), false);
  }

  CUevent_st handle() {
    if (closed) {
      throw new IllegalStateException("the CUDA event has been closed");
    }
    return handle;
  }

  /** The device it belongs to. */
  public int device() {
    return device;
  }

  /**
   * Marks the end of what a stream has been given so far; returns itself.
   *
   * @param stream of the event's device
   */
  public CudaEvent record(CudaStream stream) {
    if (stream.device() != device) {
      throw new IllegalArgumentException(
          "a CUDA event of cuda:"
              + device
              + " cannot be recorded on "
              + stream
              + "; expected a stream of the same device");
    }
    CudaThread.bind(device);
    CudaCheck.runtime("cudaEventRecord", cudaEventRecord(handle(), stream.handle()));
    return this;
  }

  /** True when the marked work is done, or nothing was ever marked; never waits. */
  public boolean isDone() {
    CudaThread.bind(device);
    int code = cudaEventQuery(handle());
    if (code == cudaErrorNotReady) {
      int unused = cudart.cudaGetLastError();
      return false;
    }
    CudaCheck.runtime("cudaEventQuery", code);
    return true;
  }

  /** Waits on the host until the marked work is done. */
  public void synchronize() {
    CudaThread.bind(device);
    CudaCheck.runtime("cudaEventSynchronize", cudaEventSynchronize(handle()));
  }

  /** Milliseconds on the device from this mark to a later one; both are done, both keep times. */
  public float millisecondsTo(CudaEvent end) {
    if (!timing || !end.timing) {
      throw new IllegalStateException("the event keeps no times; make it with timing");
    }
    float[] ms = {0};
    CudaCheck.runtime("cudaEventElapsedTime", cudaEventElapsedTime(ms, handle(), end.handle()));
    return ms[0];
  }

  @Override
  public void close() {
    if (!closed) {
      CudaThread.bind(device);
      closed = true;
      CudaCheck.runtime("cudaEventDestroy", cudaEventDestroy(handle));
    }
  }
}
