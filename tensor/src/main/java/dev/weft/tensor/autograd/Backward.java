package dev.weft.tensor.autograd;

import dev.weft.tensor.Tensor;
import org.jspecify.annotations.Nullable;

/** An operator's backward formula, written in operators of the catalogue. */
@FunctionalInterface
public interface Backward {
  /**
   * The gradients of the inputs.
   *
   * @param ctx what the forward call kept
   * @param gradOutputs one for each output, null where nothing flowed back
   * @return one for each input; null where {@link Context#needs} is false or none exists
   */
  @Nullable Tensor[] apply(Context ctx, @Nullable Tensor[] gradOutputs);

  /** What a node knows during backward. */
  interface Context {
    /** A saved input; its operator must save inputs. */
    Tensor input(int i);

    /** A saved output; its operator must save outputs. */
    Tensor output(int i);

    /** How many inputs the call had. */
    int inputCount();

    /** Whether anybody wants the gradient of an input. */
    boolean needs(int input);

    /** The shape that an input had; known without saving it. */
    long[] inputShape(int i);

    /** The dtype that an input had; known without saving it. */
    dev.weft.tensor.DType inputDType(int i);

    /** The other arguments of the call. */
    dev.weft.tensor.op.Attrs attrs();

    /** Anything that the formula's module attached with {@link Autograd#attach}, or null. */
    @Nullable Object attachment();
  }
}
