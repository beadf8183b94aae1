package dev.weft.nn;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Interceptor;
import java.util.IdentityHashMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Mixed precision: while one is open on a thread, matrix products compute in float16 or bfloat16
 * and what needs range or precision (softmax, norms, losses, powers, sums) in float32, whatever
 * their floating-point inputs are; other operators follow dtype promotion. The list is that of
 * PyTorch's {@code torch.autocast} as far as the operators exist here.
 *
 * <p>Open it around the forward computation and the loss, inside the step's {@link
 * dev.weft.tensor.TensorScope}; backward follows from what forward did. A parameter is cast once a
 * scope, so parameters must not be changed inside. Gradients arrive in the parameters' own dtype.
 */
public final class Autocast implements AutoCloseable {
  private static final Set<String> LOW =
      Set.of("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "scaled_dot_product_attention");
  private static final Set<String> FULL =
      Set.of(
          "softmax",
          "log_softmax",
          "cross_entropy",
          "nll_loss",
          "mse_loss",
          "l1_loss",
          "smooth_l1_loss",
          "binary_cross_entropy_with_logits",
          "kl_div",
          "layer_norm",
          "rms_norm",
          "exp",
          "expm1",
          "log",
          "log1p",
          "log2",
          "log10",
          "pow",
          "pow_scalar",
          "reciprocal",
          "rsqrt",
          "sum",
          "prod",
          "cumsum",
          "cumprod",
          "norm",
          "logsumexp");

  private static final ThreadLocal<@Nullable Autocast> CURRENT = new ThreadLocal<>();

  private final @Nullable Autocast before = CURRENT.get();
  private final @Nullable DType low;
  private final Dispatcher.Installed installed;
  private final IdentityHashMap<Tensor, Tensor> parameters = new IdentityHashMap<>();

  private Autocast(@Nullable DType low) {
    this.low = low;
    this.installed = Dispatcher.install(this::intercept);
    CURRENT.set(this);
  }

  /**
   * The lower precision of this thread's innermost scope, or null: for layers that can hand their
   * result on in it at once.
   */
  public static @Nullable DType current() {
    Autocast open = CURRENT.get();
    return open == null ? null : open.low;
  }

  /**
   * Opens a scope on this thread.
   *
   * @param low float16 or bfloat16
   */
  public static Autocast to(DType low) {
    if (low != DType.BFLOAT16 && low != DType.FLOAT16) {
      throw new IllegalArgumentException(
          "dtype " + low + " is no lower precision; expected bfloat16 or float16");
    }
    return new Autocast(low);
  }

  /** Opens a scope on this thread in which operators compute in their inputs' dtypes. */
  public static Autocast off() {
    return new Autocast(null);
  }

  private Tensor[] intercept(Interceptor.Call call) {
    if (call.depth() > 0 || low == null || CURRENT.get() != this) {
      // The call that this one belongs to has been cast; or an inner scope says how.
      return call.proceed();
    }
    String name = call.op().name();
    DType wanted = LOW.contains(name) ? low : FULL.contains(name) ? DType.FLOAT32 : null;
    if (wanted == null) {
      return call.proceed();
    }
    Tensor[] inputs = call.inputs();
    Tensor[] cast = null;
    for (int i = 0; i < inputs.length; i++) {
      DType d = inputs[i].dtype();
      boolean narrowOrSingle = d.isFloatingPoint() && d != DType.FLOAT64;
      if (narrowOrSingle && d != wanted) {
        cast = cast == null ? inputs.clone() : cast;
        cast[i] = cast(inputs[i], wanted);
      }
    }
    return cast == null ? call.proceed() : Dispatcher.callAll(call.op(), call.attrs(), cast);
  }

  private Tensor cast(Tensor t, DType wanted) {
    if (!t.isLeaf() || !t.requiresGrad() || wanted != low) {
      return t.to(wanted);
    }
    return parameters.computeIfAbsent(t, p -> p.to(wanted));
  }

  /** Ends it; to be called by the thread that opened it. */
  @Override
  public void close() {
    installed.close();
    parameters.clear();
    if (before == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(before);
    }
  }
}
