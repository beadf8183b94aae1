package dev.weft.parallel.pipeline;

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
import dev.weft.tensor.op.Creation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The way of an activation from one stage to a later one, and of its gradient back; one end of it,
 * or both where the stages lie on one rank. Whoever takes a message closes it.
 *
 * <p>Each direction has its group, shared between the neighbours of a pipeline and of its own for a
 * skip: on a GPU, messages of a pair of ranks in a group are matched in the order in which they are
 * posted, which is then that of the microbatches on both sides.
 */
final class Channel {
  // The dtype, the number of dimensions, and up to so many sizes.
  private static final int SIZES = 8;
  private static final List<DType> DTYPES = List.of(DType.values());

  /** What channels of a pipeline have in common. */
  static final class Shared {
    final DeviceMesh mesh;
    final Device device;
    final int microbatches;
    final List<Work> sends = new ArrayList<>();
    // Whether each activation is preceded by its form.
    boolean variable;
    // Whether messages of a GPU travel over the host, as those of the first step do: a kernel that
    // waits for another rank's message holds up the driver when it loads code, which the first step
    // does everywhere, and ranks would wait for each other in a circle.
    boolean overHost;

    Shared(DeviceMesh mesh, Device device, int microbatches) {
      this.mesh = mesh;
      this.device = device;
      this.microbatches = microbatches;
      this.overHost = device.isCuda() && mesh.size() > 1 && mesh.getGroup().controlDevice().isCpu();
    }

    /** Waits until all sends are done. */
    void finish() {
      for (Work w : sends) {
        w.await();
      }
      sends.clear();
    }
  }

  private final @Nullable String skip;
  private final int from;
  private final int to;
  private final Shared shared;
  private final ProcessGroup forward;
  private final ProcessGroup backward;
  private final boolean local;
  // Of each microbatch, or of all under 0 where they are the same.
  private final Map<Integer, Form> forms = new HashMap<>();
  private final Map<Integer, Arriving> activations = new HashMap<>();
  private final Map<Integer, Arriving> gradients = new HashMap<>();

  private record Form(DType dtype, long[] sizes) {
    static Form of(Tensor t) {
      return new Form(t.dtype(), t.shape());
    }

    boolean is(Form other) {
      return dtype == other.dtype && Arrays.equals(sizes, other.sizes);
    }

    @Override
    public String toString() {
      return dtype + Arrays.toString(sizes);
    }
  }

  /** A message, with the work that brings it, if that is another rank's. */
  private record Arriving(StridedTensor tensor, @Nullable Work work) {
    /** Where it has arrived on the host only, it is moved. */
    StridedTensor on(Device device) {
      if (work != null) {
        work.await();
      }
      if (tensor.device().equals(device)) {
        return tensor;
      }
      StridedTensor moved =
          TensorScope.outside(() -> Autograd.noGrad(() -> (StridedTensor) tensor.to(device)));
      tensor.close();
      return moved;
    }
  }

  Channel(
      @Nullable String skip,
      int from,
      int to,
      ProcessGroup forward,
      ProcessGroup backward,
      Shared shared) {
    this.skip = skip;
    this.from = from;
    this.to = to;
    this.forward = forward;
    this.backward = backward;
    this.shared = shared;
    this.local = from % shared.mesh.size() == to % shared.mesh.size();
  }

  boolean isSkip() {
    return skip != null;
  }

  /** The skip's name, or what else it is. */
  String name() {
    return skip != null ? skip : "the next stage";
  }

  int from() {
    return from;
  }

  int to() {
    return to;
  }

  private int peer(int stage) {
    return shared.mesh.groupRank(0, stage % shared.mesh.size());
  }

  private int tag(int microbatch) {
    return 1 + 2 * to * shared.microbatches + microbatch;
  }

  private int formTag(int microbatch) {
    return tag(microbatch) + shared.microbatches;
  }

  private int formKey(int microbatch) {
    return shared.variable ? microbatch : 0;
  }

  // ---- what comes ----

  /** Asks for an activation or a gradient ahead, if its form is known for certain. */
  void post(boolean activation, int microbatch) {
    Form form = forms.get(0);
    Map<Integer, Arriving> arriving = activation ? activations : gradients;
    if (!local && !shared.variable && form != null && !arriving.containsKey(microbatch)) {
      arriving.put(microbatch, receive(activation, microbatch, form));
    }
  }

  private Arriving receive(boolean activation, int microbatch, Form form) {
    Device device = shared.overHost ? Device.CPU : shared.device;
    StridedTensor t = TensorScope.outside(() -> Tensors.empty(form.dtype, device, form.sizes));
    ProcessGroup group = activation ? forward : backward;
    return new Arriving(t, group.irecv(t, peer(activation ? from : to), tag(microbatch)));
  }

  /** An activation, on the rank of the later stage. */
  StridedTensor activation(int microbatch) {
    int key = formKey(microbatch);
    if (!local && (shared.variable || !forms.containsKey(key))) {
      forms.put(key, receiveForm(microbatch));
    }
    return take(true, microbatch);
  }

  /** A gradient, on the rank of the earlier stage. */
  StridedTensor gradient(int microbatch) {
    return take(false, microbatch);
  }

  private StridedTensor take(boolean activation, int microbatch) {
    Arriving early = (activation ? activations : gradients).remove(microbatch);
    Arriving message =
        early != null
            ? early
            : receive(
                activation, microbatch, Objects.requireNonNull(forms.get(formKey(microbatch))));
    return message.on(shared.device);
  }

  private Form receiveForm(int microbatch) {
    Tensor message = Tensor.of(new long[2 + SIZES], 2 + SIZES).to(forward.controlDevice());
    Work unused = forward.recv(message, peer(from), formTag(microbatch));
    long[] form = message.toLongArray();
    message.close();
    return new Form(DTYPES.get((int) form[0]), Arrays.copyOfRange(form, 2, 2 + (int) form[1]));
  }

  // ---- what goes ----

  /** Sends an activation, with its form where the other side cannot know it. */
  void sendActivation(int microbatch, Tensor value) {
    Form form = Form.of(value);
    Form known = forms.put(formKey(microbatch), form);
    if (!shared.variable && known != null && !known.is(form)) {
      throw new IllegalArgumentException(
          "Pipeline: stage "
              + from
              + " gave "
              + value.describe()
              + " for "
              + name()
              + "; expected "
              + known
              + ", as of the first microbatch (or withUnevenMicrobatches)");
    }
    if (!local && (shared.variable || known == null)) {
      sendForm(microbatch, form);
    }
    send(true, microbatch, value);
  }

  /** Sends the gradient of an activation back. */
  void sendGradient(int microbatch, Tensor gradient) {
    send(false, microbatch, gradient);
  }

  private void send(boolean activation, int microbatch, Tensor value) {
    if (value.kind() != null) {
      throw new IllegalArgumentException(
          "Pipeline: stage "
              + (activation ? from : to)
              + " passes on a distributed tensor ("
              + value.describe()
              + ") for "
              + name()
              + "; expected plain ones between stages (toLocal, or a style's local output)");
    }
    if (local) {
      StridedTensor copy =
          TensorScope.outside(() -> Autograd.noGrad(() -> (StridedTensor) value.copy()));
      (activation ? activations : gradients).put(microbatch, new Arriving(copy, null));
      return;
    }
    ProcessGroup group = activation ? forward : backward;
    Tensor plain =
        Autograd.noGrad(() -> shared.overHost ? value.detach().to(Device.CPU) : value.detach());
    shared.sends.add(group.isend(plain, peer(activation ? to : from), tag(microbatch)));
  }

  /**
   * Sends a message of one element each way between devices, so that they are connected before a
   * step sends by them; adds the works that end with that.
   *
   * @param rank this one, in the mesh dimension
   */
  void connect(int rank, List<Work> works) {
    int ranks = shared.mesh.size();
    if (local || (from % ranks != rank && to % ranks != rank)) {
      return;
    }
    boolean sends = from % ranks == rank;
    int other = peer(sends ? to : from);
    Tensor out = Creation.full(1, DType.FLOAT32, shared.device, 1);
    Tensor in = Creation.full(0, DType.FLOAT32, shared.device, 1);
    works.add(sends ? forward.isend(out, other, 0) : forward.irecv(in, other, 0));
    works.add(sends ? backward.irecv(in, other, 0) : backward.isend(out, other, 0));
  }

  private void sendForm(int microbatch, Form form) {
    if (form.sizes.length > SIZES) {
      throw new IllegalArgumentException(
          "Pipeline: "
              + name()
              + " has "
              + form.sizes.length
              + " dimensions; expected at most "
              + SIZES);
    }
    long[] numbers = new long[2 + SIZES];
    numbers[0] = DTYPES.indexOf(form.dtype);
    numbers[1] = form.sizes.length;
    System.arraycopy(form.sizes, 0, numbers, 2, form.sizes.length);
    Tensor message = Tensor.of(numbers, numbers.length).to(forward.controlDevice());
    shared.sends.add(forward.isend(message, peer(to), formTag(microbatch)));
  }

  /** Forgets what a step has left, after a failure. */
  void clear() {
    activations.clear();
    gradients.clear();
  }

  /** The channels between neighbours of so many stages. */
  static List<Channel> chain(
      int stages, ProcessGroup forward, ProcessGroup backward, Shared shared) {
    List<Channel> channels = new ArrayList<>();
    for (int s = 1; s < stages; s++) {
      channels.add(new Channel(null, s - 1, s, forward, backward, shared));
    }
    return channels;
  }
}
