package dev.weft.parallel.pipeline;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Activations and gradients between stages. Each direction has a group of its own, so that on a GPU
 * a message waits only for those of its direction, which are posted in the same order on both
 * sides.
 */
final class Messages {
  // The dtype, the number of dimensions, and up to so many sizes.
  private static final int SIZES = 8;
  private static final List<DType> DTYPES = List.of(DType.values());

  private final DeviceMesh mesh;
  private final ProcessGroup forward;
  private final ProcessGroup backward;
  private final Device device;
  private final int microbatches;
  private final Map<Integer, Shape> inputs = new HashMap<>();
  private final Map<Integer, Shape> outputs = new HashMap<>();
  private final Map<Action, Arriving> posted = new HashMap<>();
  private final List<Work> sends = new ArrayList<>();

  private record Shape(DType dtype, long[] sizes) {
    static Shape of(Tensor t) {
      return new Shape(t.dtype(), t.shape());
    }
  }

  private record Arriving(StridedTensor tensor, Work work) {}

  Messages(DeviceMesh mesh, Device device, int microbatches) {
    this.mesh = mesh;
    this.device = device;
    this.microbatches = microbatches;
    this.forward = mesh.getGroup();
    this.backward =
        mesh.size() == 1 ? forward : Distributed.newGroup(forward.ranks(), GroupOptions.DEFAULT);
  }

  private int peer(int stage) {
    return mesh.groupRank(0, stage % mesh.size());
  }

  private int tag(int stage, int microbatch) {
    return 1 + stage * microbatches + microbatch;
  }

  /** Asks for the message that an action starts with, if its form is known. */
  void post(Action a, int stages) {
    boolean from = a.isForward() ? a.stage() > 0 : a.stage() < stages - 1;
    Shape shape = (a.isForward() ? inputs : outputs).get(a.stage());
    if (from && shape != null && !posted.containsKey(a)) {
      posted.put(a, receive(a, shape));
    }
  }

  private Arriving receive(Action a, Shape shape) {
    StridedTensor t = TensorScope.outside(() -> Tensors.empty(shape.dtype, device, shape.sizes));
    ProcessGroup group = a.isForward() ? forward : backward;
    int peer = peer(a.isForward() ? a.stage() - 1 : a.stage() + 1);
    return new Arriving(t, group.irecv(t, peer, tag(a.stage(), a.microbatch())));
  }

  /** The activation that a forward starts with; the caller closes it. */
  StridedTensor activation(Action a) {
    if (!inputs.containsKey(a.stage())) {
      inputs.put(a.stage(), receiveShape(a.stage()));
    }
    return take(a, Objects.requireNonNull(inputs.get(a.stage())));
  }

  /** The gradient that a backward starts with; the caller closes it. */
  StridedTensor gradient(Action a) {
    return take(a, Objects.requireNonNull(outputs.get(a.stage())));
  }

  private StridedTensor take(Action a, Shape shape) {
    Arriving early = posted.remove(a);
    Arriving message = early == null ? receive(a, shape) : early;
    message.work.await();
    return message.tensor;
  }

  /** Sends the output of a stage to the next one, the first time with its form. */
  void sendActivation(int stage, int microbatch, Tensor output) {
    Shape shape = Shape.of(output);
    Shape known = outputs.get(stage);
    if (known == null) {
      sendShape(stage + 1, shape);
      outputs.put(stage, shape);
    } else if (known.dtype != shape.dtype || !Arrays.equals(known.sizes, shape.sizes)) {
      throw new IllegalArgumentException(
          "Pipeline: stage "
              + stage
              + " gave "
              + output.describe()
              + "; expected "
              + known.dtype
              + Arrays.toString(known.sizes)
              + ", as of the first microbatch");
    }
    sends.add(forward.isend(plain(output, stage), peer(stage + 1), tag(stage + 1, microbatch)));
  }

  /** Sends the gradient of a stage's input to the stage before. */
  void sendGradient(int stage, int microbatch, Tensor gradient) {
    sends.add(backward.isend(plain(gradient, stage), peer(stage - 1), tag(stage - 1, microbatch)));
  }

  private static Tensor plain(Tensor t, int stage) {
    if (t.kind() != null) {
      throw new IllegalArgumentException(
          "Pipeline: stage "
              + stage
              + " passes on a distributed tensor ("
              + t.describe()
              + "); expected plain ones between stages (toLocal, or a style's local output)");
    }
    return Autograd.noGrad(() -> t.detach());
  }

  private void sendShape(int toStage, Shape shape) {
    if (shape.sizes.length > SIZES) {
      throw new IllegalArgumentException(
          "Pipeline: an activation has "
              + shape.sizes.length
              + " dimensions; expected at most "
              + SIZES);
    }
    long[] form = new long[2 + SIZES];
    form[0] = DTYPES.indexOf(shape.dtype);
    form[1] = shape.sizes.length;
    System.arraycopy(shape.sizes, 0, form, 2, shape.sizes.length);
    Tensor message = Tensor.of(form, form.length).to(forward.controlDevice());
    sends.add(forward.isend(message, peer(toStage), 0));
  }

  private Shape receiveShape(int stage) {
    Tensor message = Tensor.of(new long[2 + SIZES], 2 + SIZES).to(forward.controlDevice());
    Work unused = forward.recv(message, peer(stage - 1), 0);
    long[] form = message.toLongArray();
    return new Shape(DTYPES.get((int) form[0]), Arrays.copyOfRange(form, 2, 2 + (int) form[1]));
  }

  /** Waits until all sends are done. */
  void finish() {
    for (Work w : sends) {
      w.await();
    }
    sends.clear();
  }
}
