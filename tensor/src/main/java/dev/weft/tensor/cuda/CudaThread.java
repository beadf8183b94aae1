package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaSetDevice;

import org.jspecify.annotations.Nullable;

/**
 * What CUDA needs to know of one Java thread: its current device, its current stream on each device
 * and its launch buffer. Never used from virtual threads, whose carrier may change.
 */
final class CudaThread {
  private static final ThreadLocal<CudaThread> CURRENT = ThreadLocal.withInitial(CudaThread::new);

  private int device;
  // The device that the runtime was last told of on this thread; -1 before the first time.
  private int bound = -1;
  private @Nullable CudaStream[] streams = new CudaStream[1];
  private final Launch launch = new Launch();

  private CudaThread() {
    if (Thread.currentThread().getClass().getName().contains("VirtualThread")) {
      throw new IllegalStateException(
          "CUDA cannot be used from a virtual thread: its current device belongs to the carrier");
    }
  }

  static CudaThread current() {
    return CURRENT.get();
  }

  /** Makes sure that the calls that follow on this thread go to a device. */
  static CudaThread bind(int device) {
    CudaThread thread = CURRENT.get();
    thread.bindTo(device);
    return thread;
  }

  void bindTo(int to) {
    if (bound != to) {
      Cuda.check(to);
      CudaCheck.runtime("cudaSetDevice", cudaSetDevice(to));
      bound = to;
    }
  }

  int device() {
    return device;
  }

  void setDevice(int to) {
    device = to;
    bindTo(to);
  }

  CudaStream stream(int of) {
    if (of < streams.length) {
      CudaStream s = streams[of];
      if (s != null) {
        return s;
      }
    }
    CudaStream s = CudaStream.defaultStream(of);
    setStream(s);
    return s;
  }

  void setStream(CudaStream stream) {
    if (stream.device() >= streams.length) {
      streams = java.util.Arrays.copyOf(streams, stream.device() + 1);
    }
    streams[stream.device()] = stream;
  }

  Launch launch() {
    return launch;
  }
}
