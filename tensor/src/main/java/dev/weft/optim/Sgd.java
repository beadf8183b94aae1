package dev.weft.optim;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.InPlace;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Stochastic gradient descent: p -= rate m, where m is the gradient, or with momentum the gradient
 * at the first step and momentum m + gradient later on.
 */
public final class Sgd extends Optimizer {
  private final double momentum;
  private final @Nullable Tensor[] buffers;

  private Sgd(Builder b) {
    super(b.parameters, b.learningRate);
    this.momentum = b.momentum;
    this.buffers = new @Nullable Tensor[b.parameters.size()];
  }

  /** Options; the learning rate must be set. */
  public static final class Builder {
    private final List<Tensor> parameters;
    private double learningRate = Double.NaN;
    private double momentum;

    private Builder(List<Tensor> parameters) {
      this.parameters = parameters;
    }

    /** The step length. */
    public Builder learningRate(double rate) {
      this.learningRate = rate;
      return this;
    }

    /** How much of the last step is kept; 0 at first. */
    public Builder momentum(double momentum) {
      this.momentum = momentum;
      return this;
    }

    /** The optimiser. */
    public Sgd build() {
      return new Sgd(this);
    }
  }

  /** Starts an optimiser of these parameters. */
  public static Builder over(List<Tensor> parameters) {
    return new Builder(parameters);
  }

  @Override
  Map<String, @Nullable Tensor[]> slots() {
    return momentum == 0 ? Map.of() : Map.of("momentum_buffer", buffers);
  }

  @Override
  void update(int index, Tensor parameter, Tensor gradient) {
    Tensor m = gradient;
    if (momentum != 0) {
      Tensor buffer = buffers[index];
      if (buffer == null) {
        buffer = InPlace.copy(zerosLike(parameter), gradient);
        buffers[index] = buffer;
      } else {
        Tensor unused = InPlace.add(InPlace.mul(buffer, momentum), gradient);
      }
      m = buffer;
    }
    Tensor unused = InPlace.sub(parameter, m, learningRate());
  }

  @Override
  public void close() {
    closeAll(buffers);
  }
}
