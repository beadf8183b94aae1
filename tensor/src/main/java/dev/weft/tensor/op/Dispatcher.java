package dev.weft.tensor.op;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.CudaCopies;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The one way into every operator. A call passes the thread's interceptors, then autograd, then the
 * kind of its tensors, then the device's kernel. Stateless but for thread-locals; any thread may
 * call it.
 */
public final class Dispatcher {
  private static final ThreadLocal<State> STATE = ThreadLocal.withInitial(State::new);

  private Dispatcher() {}

  private static final class State {
    Interceptor @Nullable [] interceptors;
    int depth;
    boolean recorded;
  }

  /** Removes an interceptor again. */
  public interface Installed extends AutoCloseable {
    @Override
    void close();
  }

  /** Installs an interceptor on this thread, inside those that are there. */
  public static Installed install(Interceptor interceptor) {
    State state = STATE.get();
    Interceptor @Nullable [] before = state.interceptors;
    if (before == null) {
      state.interceptors = new Interceptor[] {interceptor};
    } else {
      state.interceptors = Arrays.copyOf(before, before.length + 1);
      state.interceptors[before.length] = interceptor;
    }
    return () -> {
      if (STATE.get() != state) {
        throw new IllegalStateException("an interceptor is removed by the thread it is on");
      }
      state.interceptors = without(state.interceptors, interceptor);
    };
  }

  private static Interceptor @Nullable [] without(Interceptor @Nullable [] all, Interceptor one) {
    if (all == null || all.length == 1) {
      return null;
    }
    return Arrays.stream(all).filter(i -> i != one).toArray(Interceptor[]::new);
  }

  /** Calls an operator with one result. */
  public static Tensor call(Op op, Attrs attrs, Tensor... inputs) {
    return callAll(op, attrs, inputs)[0];
  }

  /** Calls an operator. */
  public static Tensor[] callAll(Op op, Attrs attrs, Tensor... inputs) {
    State state = STATE.get();
    Interceptor @Nullable [] interceptors = state.interceptors;
    if (interceptors == null) {
      return record(state, op, attrs, inputs);
    }
    return new Chain(state, interceptors, 0, op, attrs, inputs, state.depth).proceed();
  }

  private record Chain(
      State state,
      Interceptor[] interceptors,
      int next,
      Op op,
      Attrs attrs,
      Tensor[] inputs,
      int depth)
      implements Interceptor.Call {
    @Override
    public Tensor[] proceed() {
      if (next == interceptors.length) {
        return record(state, op, attrs, inputs);
      }
      return interceptors[next].intercept(
          new Chain(state, interceptors, next + 1, op, attrs, inputs, depth));
    }
  }

  private static Tensor[] record(State state, Op op, Attrs attrs, Tensor[] inputs) {
    boolean record = Autograd.needsNode(op, inputs);
    if (op.form() == Op.Form.IN_PLACE) {
      Autograd.checkInPlace(op, inputs, record);
    }
    boolean before = state.recorded;
    state.recorded = record;
    Tensor[] outputs;
    try {
      outputs = compute(state, op, attrs, inputs);
    } finally {
      state.recorded = before;
    }
    if (record) {
      Autograd.record(op, attrs, inputs, outputs);
    }
    return outputs;
  }

  private static Tensor[] compute(State state, Op op, Attrs attrs, Tensor[] inputs) {
    if (op.form() == Op.Form.COMPOSITE) {
      return inner(state, () -> op.composite().run(inputs, attrs));
    }
    for (Tensor t : inputs) {
      TensorKind kind = t.kind();
      if (kind != null) {
        return inner(state, () -> kind.dispatch(op, attrs, inputs));
      }
    }
    StridedTensor[] plain = new StridedTensor[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      plain[i] = (StridedTensor) inputs[i];
    }
    if (op.form() == Op.Form.VIEW) {
      return new Tensor[] {op.viewRule().view(plain[0], attrs)};
    }
    return onDevice(op, attrs, plain);
  }

  private interface Body {
    Tensor[] run();
  }

  /** Calls made inside are one level deeper and record no gradients. */
  private static Tensor[] inner(State state, Body body) {
    state.depth++;
    boolean before = Autograd.setEnabled(false);
    try {
      return body.run();
    } finally {
      Autograd.setEnabled(before);
      state.depth--;
    }
  }

  private static Tensor[] onDevice(Op op, Attrs attrs, StridedTensor[] given) {
    Device device = given[0].device();
    StridedTensor[] inputs = given;
    for (StridedTensor t : given) {
      if (!t.device().equals(device)) {
        device = commonDevice(op, given);
        inputs = withScalarsOn(device, given);
        break;
      }
    }
    TensorSpec[] specs = op.specRule().infer(inputs, attrs);
    StridedTensor[] outputs;
    if (op.form() == Op.Form.IN_PLACE) {
      outputs = new StridedTensor[] {inputs[0]};
      if (!Arrays.equals(specs[0].shape(), inputs[0].shape())) {
        throw new IllegalArgumentException(
            op
                + ": the result has shape "
                + Arrays.toString(specs[0].shape())
                + " and does not fit in place into "
                + Arrays.toString(inputs[0].shape()));
      }
    } else {
      outputs = new StridedTensor[specs.length];
      for (int i = 0; i < specs.length; i++) {
        outputs[i] = Tensors.empty(specs[i].dtype(), device, specs[i].shape());
      }
    }
    if (!device.isMeta()) {
      Kernel kernel = op.kernel(device.type());
      if (kernel == null) {
        throw new UnsupportedOperationException(
            "operator '" + op + "' has no kernel for device " + device);
      }
      kernel.run(inputs, outputs, attrs);
    }
    if (op.form() == Op.Form.IN_PLACE) {
      inputs[0].storage().bumpVersion();
    }
    return outputs;
  }

  /**
   * The inputs' device, which must be one but for scalars of the host: CPU tensors of no dimensions
   * that are not written.
   */
  private static Device commonDevice(Op op, StridedTensor[] inputs) {
    @Nullable Device device = null;
    for (int i = 0; i < inputs.length; i++) {
      StridedTensor t = inputs[i];
      boolean scalar = isHostScalar(t) && !(i == 0 && op.form() == Op.Form.IN_PLACE);
      if (!scalar && device == null) {
        device = t.device();
      } else if (!scalar && !t.device().equals(device)) {
        throw new IllegalArgumentException(
            op
                + ": all tensors must be on one device; got "
                + Arrays.stream(inputs)
                    .map(x -> x.device().toString())
                    .collect(Collectors.joining(", ")));
      }
    }
    return device == null ? Device.CPU : device;
  }

  private static boolean isHostScalar(StridedTensor t) {
    return t.ndim() == 0 && t.device().isCpu();
  }

  private static StridedTensor[] withScalarsOn(Device device, StridedTensor[] inputs) {
    StridedTensor[] moved = inputs.clone();
    for (int i = 0; i < moved.length; i++) {
      if (!moved[i].device().equals(device)) {
        moved[i] =
            device.isMeta()
                ? Tensors.empty(moved[i].dtype(), device)
                : CudaCopies.to(moved[i], device);
      }
    }
    return moved;
  }

  /** How deep the current call is nested; 0 outside operators. */
  public static int depth() {
    return STATE.get().depth;
  }

  /** Whether the call that this thread is in the middle of will be recorded for backward. */
  public static boolean isRecorded() {
    return STATE.get().recorded;
  }

  /** Refuses an input that is not of a dtype category that the operator takes. */
  public static void requireDType(Op op, String argument, Tensor t, DType expected) {
    if (t.dtype() != expected) {
      throw new IllegalArgumentException(
          op + ": " + argument + " has dtype " + t.dtype() + "; expected " + expected);
    }
  }
}
