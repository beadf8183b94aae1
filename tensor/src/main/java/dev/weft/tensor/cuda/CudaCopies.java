package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaMemcpyAsync;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToDevice;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToHost;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyHostToDevice;
import static org.bytedeco.cuda.global.cudart.cudaMemsetAsync;

import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;

/**
 * Copies between the host and devices, and within one, in the order of the device's current stream.
 * Any thread. Shapes are equal; strides and dtypes may differ.
 */
public final class CudaCopies {
  // Up to here the driver takes the bytes along with the command.
  private static final long STAGED_BY_DRIVER = 64 << 10;

  private CudaCopies() {}

  /**
   * Copies between any two devices, of which at least one is CUDA. The host's tensor may be reused
   * when the call returns, unless it is pinned: then only when the stream is done.
   */
  public static void copy(StridedTensor from, StridedTensor to) {
    if (!Arrays.equals(from.shape(), to.shape())) {
      throw new IllegalArgumentException(
          "a copy needs equal shapes; got "
              + Arrays.toString(from.shape())
              + " and "
              + Arrays.toString(to.shape()));
    }
    if (from.numel() == 0) {
      return;
    }
    if (from.device().isCuda() && to.device().isCuda()) {
      if (from.device().equals(to.device())) {
        within(from, to);
      } else {
        between(from, to);
      }
    } else if (from.device().isCpu() && to.device().isCuda()) {
      toDevice(from, to);
    } else if (from.device().isCuda() && to.device().isCpu()) {
      toHost(from, to);
    } else {
      throw new IllegalArgumentException(
          "nothing can be copied from " + from.device() + " to " + to.device());
    }
  }

  /** A tensor on another device with the same values, dtype and shape; contiguous. */
  public static StridedTensor to(StridedTensor t, Device device) {
    StridedTensor copy = Tensors.empty(t.dtype(), device, t.shape());
    copy(t, copy);
    return copy;
  }

  /** Whether bytes can be moved as they are. */
  static boolean sameLayout(StridedTensor a, StridedTensor b) {
    return a.dtype() == b.dtype()
        && ((a.isContiguous() && b.isContiguous())
            || (Arrays.equals(a.strides(), b.strides()) && isPacked(a)));
  }

  /** Whether the elements fill a range of memory, in whatever order of dimensions. */
  private static boolean isPacked(StridedTensor t) {
    long last = 0;
    for (int d = 0; d < t.ndim(); d++) {
      if (t.strides()[d] == 0 && t.shape()[d] > 1) {
        return false;
      }
      last += (t.shape()[d] - 1) * t.strides()[d];
    }
    return last + 1 == t.numel();
  }

  private static void within(StridedTensor from, StridedTensor to) {
    if (sameLayout(from, to)) {
      move(
          to.device().index(),
          from.dataAddress(),
          to.dataAddress(),
          bytes(from),
          cudaMemcpyDeviceToDevice);
    } else {
      CopyKernel.run(from, to);
    }
  }

  private static void between(StridedTensor from, StridedTensor to) {
    StridedTensor dense = from.isContiguous() ? from : Regions.copyOf(from);
    if (!to.isContiguous() || to.dtype() != from.dtype()) {
      StridedTensor landed = Tensors.empty(from.dtype(), to.device(), from.shape());
      between(dense, landed);
      within(landed, to);
      return;
    }
    PeerAccess.enable(to.device().index(), from.device().index());
    // The source's stream has work to finish first, and its memory is in use until this is done.
    CudaStream stream = CudaStream.current(to.device().index());
    CudaStream source = CudaStream.current(from.device().index());
    stream.waitFor(source);
    move(
        to.device().index(),
        dense.dataAddress(),
        to.dataAddress(),
        bytes(dense),
        cudaMemcpyDeviceToDevice);
    ((CudaStorage) dense.storage()).recordStream(stream);
  }

  private static void toDevice(StridedTensor from, StridedTensor to) {
    int device = to.device().index();
    StridedTensor dense = from.isContiguous() ? from : Regions.copyOf(from);
    if (!to.isContiguous() || to.dtype() != from.dtype()) {
      StridedTensor landed = Tensors.empty(from.dtype(), to.device(), from.shape());
      toDevice(dense, landed);
      within(landed, to);
      return;
    }
    long bytes = bytes(dense);
    long source = dense.dataAddress();
    if (bytes <= STAGED_BY_DRIVER || PinnedMemory.isPinned(dense)) {
      move(device, source, to.dataAddress(), bytes, cudaMemcpyHostToDevice);
      return;
    }
    PinnedMemory.Block block = PinnedMemory.take(bytes);
    Memory.copy(source, block.address, bytes);
    move(device, block.address, to.dataAddress(), bytes, cudaMemcpyHostToDevice);
    PinnedMemory.giveBackAfter(block, CudaStream.current(device));
  }

  private static void toHost(StridedTensor from, StridedTensor to) {
    StridedTensor dense = from.isContiguous() ? from : Regions.copyOf(from);
    if (!to.isContiguous() || to.dtype() != from.dtype()) {
      StridedTensor landed = Tensors.empty(from.dtype(), from.shape());
      toHost(dense, landed);
      Regions.copy(landed, to);
      return;
    }
    int device = from.device().index();
    move(device, dense.dataAddress(), to.dataAddress(), bytes(dense), cudaMemcpyDeviceToHost);
    CudaStream.current(device).synchronize();
  }

  private static long bytes(StridedTensor t) {
    return t.numel() * t.dtype().byteSize();
  }

  private static void move(int device, long from, long to, long bytes, int kind) {
    CudaThread thread = CudaThread.bind(device);
    CudaCheck.runtime(
        "cudaMemcpyAsync",
        cudaMemcpyAsync(
            new RawPointer(to), new RawPointer(from), bytes, kind, thread.stream(device).handle()));
  }

  /** Sets all bytes of a contiguous tensor to zero. */
  static void zero(StridedTensor t) {
    if (t.numel() > 0) {
      int device = t.device().index();
      CudaThread thread = CudaThread.bind(device);
      CudaCheck.runtime(
          "cudaMemsetAsync",
          cudaMemsetAsync(
              new RawPointer(t.dataAddress()), 0, bytes(t), thread.stream(device).handle()));
    }
  }
}
