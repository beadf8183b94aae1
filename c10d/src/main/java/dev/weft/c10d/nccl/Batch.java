package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.jspecify.annotations.Nullable;

/** Operations of one thread that are put off, to be launched as one group. Used by that thread. */
final class Batch implements NcclCommunicator.Body {
  final Thread thread = Thread.currentThread();
  private int device = -1;
  final List<NcclWork> works = new ArrayList<>();
  final Staging staging = new Staging();
  private final List<NcclCommunicator.Body> collectives = new ArrayList<>();
  private final Exchange messages;

  Batch(int rank, int size) {
    this.messages = new Exchange("coalesced", rank, size);
  }

  /** Checks that an operation is of the batch's device. */
  void use(String operation, int on) {
    if (device >= 0 && device != on) {
      throw new IllegalArgumentException(
          operation
              + ": a tensor on cuda:"
              + on
              + " is in a batch for cuda:"
              + device
              + "; expected one device");
    }
    device = on;
  }

  int device() {
    return device;
  }

  void add(NcclWork work, NcclCommunicator.Body body) {
    works.add(work);
    collectives.add(body);
  }

  Exchange add(NcclWork message) {
    works.add(message);
    return messages;
  }

  @Override
  public int run(NcclCommunicator communicator, CUstream_st stream) {
    int code = ncclSuccess;
    if (!collectives.isEmpty()) {
      code = runCollectives(communicator, stream);
    }
    communicator.settle("coalesced", code);
    return messages.run(communicator, stream);
  }

  private int runCollectives(NcclCommunicator communicator, CUstream_st stream) {
    int begun = ncclGroupStart();
    if (begun != ncclSuccess) {
      return begun;
    }
    int bad = ncclSuccess;
    @Nullable RuntimeException thrown = null;
    for (NcclCommunicator.Body body : collectives) {
      try {
        int code = body.run(communicator, stream);
        if (code != ncclSuccess && code != ncclInProgress && bad == ncclSuccess) {
          bad = code;
        }
      } catch (RuntimeException e) {
        thrown = e;
        break;
      }
    }
    int code = ncclGroupEnd();
    if (thrown != null) {
      throw thrown;
    }
    return bad != ncclSuccess ? bad : code;
  }
}
