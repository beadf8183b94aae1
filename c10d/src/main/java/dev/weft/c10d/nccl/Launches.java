package dev.weft.c10d.nccl;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Work;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.cuda.CudaStorage;
import dev.weft.tensor.cuda.CudaStream;
import java.time.Duration;
import java.util.List;

/**
 * The way of every operation of a group: into the open batch, or at once to a communicator, with
 * the memory of its tensors kept for as long as the device needs it. Thread-safe.
 */
final class Launches {
  private static final List<StridedTensor> NONE = List.of();

  private final NcclGroup group;

  Launches(NcclGroup group) {
    this.group = group;
  }

  /** Launches a collective; takes the staging over. */
  NcclWork submit(
      String name,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      CollectiveOptions options,
      Staging staging,
      NcclCommunicator.Body body) {
    boolean async = options.async();
    try {
      group.checkUsable(name);
      int device = (outputs.isEmpty() ? inputs : outputs).get(0).device().index();
      NcclWork work =
          new NcclWork(group, name, group.nextSequence(), outputs, -1, false, timeoutOf(options));
      keep(work, device, async, outputs, inputs, staging);
      Batch b = group.batchHere(name, device);
      if (b != null) {
        b.add(work, body);
        b.staging.takeOver(staging);
        return work;
      }
      group.communicators().collective(device).launch(work, async, null, staging, body);
      if (!async && group.options().blockingWait()) {
        work.awaitOnHost();
      }
      return work;
    } finally {
      staging.close();
    }
  }

  /**
   * The memory of an asynchronous operation is held by its work. That of a synchronous one is safe
   * where it belongs to the stream that the operation runs on; other streams' is told of it.
   */
  private static void keep(
      NcclWork work,
      int device,
      boolean async,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      Staging staging) {
    if (!async) {
      CudaStream current = CudaStream.current(device);
      for (int i = 0; i < outputs.size(); i++) {
        tell(outputs.get(i).storage(), current);
      }
      for (int i = 0; i < inputs.size(); i++) {
        tell(inputs.get(i).storage(), current);
      }
      return;
    }
    int o = outputs.size();
    int n = inputs.size();
    Storage[] held = new Storage[o + n + staging.count()];
    for (int i = 0; i < held.length; i++) {
      held[i] =
          i < o
              ? outputs.get(i).storage()
              : i < o + n ? inputs.get(i - o).storage() : staging.storage(i - o - n);
    }
    work.hold(held);
  }

  private static void tell(Storage storage, CudaStream current) {
    if (storage instanceof CudaStorage c && c.stream() != current) {
      c.recordStream(current);
    }
  }

  Duration timeoutOf(CollectiveOptions options) {
    Duration own = options.timeout();
    return own == null ? group.timeout() : own;
  }

  /** Posts a message to or from a rank of the group. */
  Work message(boolean send, StridedTensor t, int peer, CollectiveOptions options) {
    String name = send ? "send" : "recv";
    group.checkUsable(name);
    PairChannel pair = group.communicators().pair(peer);
    Staging staging = new Staging();
    long at = send ? staging.in(t) : staging.out(t);
    long count = NcclTypes.movedCount(t.dtype(), t.numel());
    int dtype = NcclTypes.moved(t.dtype());
    List<StridedTensor> one = List.of(t);
    NcclWork work =
        new NcclWork(
            group, name, pair.nextNumber(send), send ? NONE : one, peer, false, timeoutOf(options));
    int device = t.device().index();
    boolean async = options.async();
    keep(work, device, async, one, NONE, staging);
    Batch b = group.batchHere(name, device);
    if (b != null) {
      Exchange messages = b.add(work);
      Exchange unused =
          send ? messages.send(peer, at, count, dtype) : messages.receive(peer, at, count, dtype);
      b.staging.takeOver(staging);
      return work;
    }
    PairChannel.Message m = new PairChannel.Message(send, work, device, at, count, dtype, staging);
    if (async) {
      pair.post(m);
    } else {
      try {
        pair.now(m);
      } finally {
        staging.close();
      }
      if (group.options().blockingWait()) {
        work.awaitOnHost();
      }
    }
    return work;
  }

  /** Launches what the open batch of this thread holds. */
  void endCoalescing() {
    Batch b = group.endCoalescing();
    try {
      if (!b.works.isEmpty()) {
        group.communicators().collective(b.device()).launchAll(b.works, true, null, b.staging, b);
      }
    } catch (RuntimeException | Error e) {
      b.works.forEach(w -> w.fail(e));
      throw e;
    } finally {
      b.staging.close();
    }
  }
}
