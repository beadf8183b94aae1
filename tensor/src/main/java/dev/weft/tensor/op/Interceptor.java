package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;

/**
 * Sees every operator call of the threads it is installed on, before autograd: a profiler, a
 * counter of collectives, a user's own. Called on the calling thread.
 */
@FunctionalInterface
public interface Interceptor {
  /** One call. */
  interface Call {
    /** The operator. */
    Op op();

    /** Its other arguments. */
    Attrs attrs();

    /** Its tensors; do not change the array. */
    Tensor[] inputs();

    /** 0 for a call that the user made, more for calls that operators make. */
    int depth();

    /** Runs the call (the next interceptor, at last the operator). */
    Tensor[] proceed();
  }

  /** Runs {@link Call#proceed} and returns its result, or another of the same shape. */
  Tensor[] intercept(Call call);
}
