package dev.weft.c10d;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The catalogue's entries for collectives, and the way through the dispatcher. Stateless. */
final class CollectiveOps {
  static final Op ALL_REDUCE = op("allreduce_");
  static final Op BROADCAST = op("broadcast_");
  static final Op REDUCE = op("reduce_");
  static final Op ALL_GATHER = op("allgather_");
  static final Op ALL_GATHER_INTO_TENSOR = op("allgather_into_tensor_");
  static final Op REDUCE_SCATTER = op("reduce_scatter_");
  static final Op REDUCE_SCATTER_TENSOR = op("reduce_scatter_tensor_");
  static final Op ALL_TO_ALL = op("alltoall_");
  static final Op ALL_TO_ALL_SINGLE = op("alltoall_single_");
  static final Op GATHER = op("gather_");
  static final Op SCATTER = op("scatter_");
  static final Op BARRIER = op("barrier");
  static final Op SEND = op("send");
  static final Op RECV = op("recv_");

  private static final int LAUNCH = 4;

  private CollectiveOps() {}

  private static Op op(String name) {
    return Op.composite(
        "c10d." + name, (inputs, attrs) -> attrs.get(LAUNCH, Launch.class).run(inputs));
  }

  /** Carries the work out of the dispatcher, which returns tensors. */
  private static final class Launch {
    private final int outputs;
    private final Supplier<Work> body;
    private @Nullable Work work;

    Launch(int outputs, Supplier<Work> body) {
      this.outputs = outputs;
      this.body = body;
    }

    Tensor[] run(Tensor[] tensors) {
      for (Tensor t : tensors) {
        for (var storage : t.storages()) {
          storage.await();
        }
      }
      work = body.get();
      Tensor[] written = new Tensor[outputs];
      for (int i = 0; i < outputs; i++) {
        written[i] = tensors[i];
        if (!tensors[i].device().isMeta()) {
          tensors[i].storages().forEach(s -> s.bumpVersion());
        }
      }
      return written;
    }

    @Override
    public String toString() {
      return "launch";
    }
  }

  static Work call(
      Op op,
      ProcessGroup group,
      @Nullable ReduceOp reduceOp,
      @Nullable Integer peer,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      Supplier<Work> body) {
    Tensor[] all = new Tensor[outputs.size() + inputs.size()];
    int at = 0;
    for (Tensor t : outputs) {
      all[at++] = t;
    }
    for (Tensor t : inputs) {
      all[at++] = t;
    }
    Launch launch = new Launch(outputs.size(), body);
    Attrs attrs = Attrs.of(group, reduceOp, peer, outputs.size(), launch);
    Tensor[] unused = Dispatcher.callAll(op, attrs, all);
    Work work = launch.work;
    if (work == null) {
      throw new IllegalStateException(
          op + ": an interceptor did not let the call proceed; a collective cannot be replaced");
    }
    return work;
  }
}
