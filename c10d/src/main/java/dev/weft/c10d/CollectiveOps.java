package dev.weft.c10d;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The catalogue's entries for collectives, and the way through the dispatcher. Stateless. */
final class CollectiveOps {
  static final Kind ALL_REDUCE = kind("allreduce_", "all_reduce");
  static final Kind BROADCAST = kind("broadcast_", "broadcast");
  static final Kind REDUCE = kind("reduce_", "reduce");
  static final Kind ALL_GATHER = kind("allgather_", "all_gather");
  static final Kind ALL_GATHER_INTO_TENSOR = kind("allgather_into_tensor_", "_all_gather_base");
  static final Kind REDUCE_SCATTER = kind("reduce_scatter_", "reduce_scatter");
  static final Kind REDUCE_SCATTER_TENSOR = kind("reduce_scatter_tensor_", "_reduce_scatter_base");
  static final Kind ALL_TO_ALL = kind("alltoall_", "all_to_all");
  static final Kind ALL_TO_ALL_SINGLE = kind("alltoall_single_", "all_to_all");
  static final Kind GATHER = kind("gather_", "gather");
  static final Kind SCATTER = kind("scatter_", "scatter");
  static final Kind BARRIER = kind("barrier", "barrier");
  static final Kind SEND = kind("send", "send");
  static final Kind RECV = kind("recv_", "recv");

  private CollectiveOps() {}

  /**
   * A collective or a message.
   *
   * @param op the catalogue's entry
   * @param recorded its name in the flight recorder: PyTorch's
   * @param isMessage whether it concerns two ranks alone
   */
  record Kind(Op op, String recorded, boolean isMessage) {}

  private static Kind kind(String name, String recorded) {
    Op op =
        Op.composite(
            "c10d." + name,
            (inputs, attrs) -> attrs.get(CollectiveCall.ATTRIBUTE, Launch.class).run(inputs));
    return new Kind(op, recorded, recorded.equals("send") || recorded.equals("recv"));
  }

  /** Carries the work out of the dispatcher, which returns tensors. */
  private static final class Launch implements CollectiveCall {
    private final int outputs;
    private final CallRecording recording;
    private final Supplier<Work> body;
    private @Nullable Work work;

    Launch(int outputs, CallRecording recording, Supplier<Work> body) {
      this.outputs = outputs;
      this.recording = recording;
      this.body = body;
    }

    Tensor[] run(Tensor[] tensors) {
      for (Tensor t : tensors) {
        ((StridedTensor) t).storage().await();
      }
      work = recording.run(body);
      for (int i = 0; i < outputs; i++) {
        if (!tensors[i].device().isMeta()) {
          ((StridedTensor) tensors[i]).storage().bumpVersion();
        }
      }
      return outputs == tensors.length ? tensors : Arrays.copyOf(tensors, outputs);
    }

    @Override
    public ProcessGroup group() {
      return recording.group();
    }

    @Override
    public boolean isAsync() {
      return recording.options().async();
    }

    @Override
    public Work work() {
      Work there = work;
      if (there == null) {
        throw new IllegalStateException(
            recording.kind().op() + ": the call has not proceeded, so there is no work yet");
      }
      return there;
    }

    @Override
    public void replaceWork(Work other) {
      Work unused = work();
      work = other;
    }

    @Override
    public String toString() {
      return "launch";
    }
  }

  static Work call(
      Kind kind,
      ProcessGroup group,
      @Nullable ReduceOp reduceOp,
      @Nullable Integer peer,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      CollectiveOptions options,
      Supplier<Work> body) {
    Tensor[] all = new Tensor[outputs.size() + inputs.size()];
    int at = 0;
    for (int i = 0; i < outputs.size(); i++) {
      all[at++] = outputs.get(i);
    }
    for (int i = 0; i < inputs.size(); i++) {
      all[at++] = inputs.get(i);
    }
    CallRecording recording = new CallRecording(kind, group, peer, outputs, inputs, options);
    Launch launch = new Launch(outputs.size(), recording, body);
    Attrs attrs = Attrs.of(group, reduceOp, peer, outputs.size(), launch);
    Tensor[] unused = Dispatcher.callAll(kind.op(), attrs, all);
    Work work = launch.work;
    if (work == null) {
      throw new IllegalStateException(
          kind.op()
              + ": an interceptor did not let the call proceed; a collective cannot be replaced");
    }
    return work;
  }
}
