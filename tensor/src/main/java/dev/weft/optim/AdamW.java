package dev.weft.optim;

import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Updates;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Adam with decoupled weight decay; the order of operations is {@link Updates#adamw}'s. */
public final class AdamW extends Optimizer {
  private final double beta1;
  private final double beta2;
  private final double eps;
  private final double weightDecay;
  private final Predicate<Tensor> decayed;
  private final @Nullable Tensor[] means;
  private final @Nullable Tensor[] squares;

  private AdamW(Builder b) {
    super(b.parameters, b.learningRate);
    this.beta1 = b.beta1;
    this.beta2 = b.beta2;
    this.eps = b.eps;
    this.weightDecay = b.weightDecay;
    this.decayed = b.decayed;
    this.means = new @Nullable Tensor[b.parameters.size()];
    this.squares = new @Nullable Tensor[b.parameters.size()];
  }

  /** Options with PyTorch's defaults. */
  public static final class Builder {
    private final List<Tensor> parameters;
    private double learningRate = 1e-3;
    private double beta1 = 0.9;
    private double beta2 = 0.999;
    private double eps = 1e-8;
    private double weightDecay = 0.01;
    private Predicate<Tensor> decayed = p -> true;

    private Builder(List<Tensor> parameters) {
      this.parameters = parameters;
    }

    /** The step length; 1e-3 at first. */
    public Builder learningRate(double rate) {
      this.learningRate = rate;
      return this;
    }

    /** The decay of the running mean and mean square; 0.9 and 0.999 at first. */
    public Builder betas(double beta1, double beta2) {
      for (double b : new double[] {beta1, beta2}) {
        if (!(b >= 0 && b < 1)) {
          throw new IllegalArgumentException("beta " + b + "; expected at least 0 and below 1");
        }
      }
      this.beta1 = beta1;
      this.beta2 = beta2;
      return this;
    }

    /** What is added to the root of the mean square; 1e-8 at first. */
    public Builder eps(double eps) {
      this.eps = eps;
      return this;
    }

    /** The weight decay; 0.01 at first. */
    public Builder weightDecay(double weightDecay) {
      this.weightDecay = weightDecay;
      return this;
    }

    /** Which parameters decay, such as {@code p -> p.ndim() > 1}; all at first. */
    public Builder decayOnly(Predicate<Tensor> decayed) {
      this.decayed = decayed;
      return this;
    }

    /** The optimiser. */
    public AdamW build() {
      return new AdamW(this);
    }
  }

  /** Starts an optimiser of these parameters. */
  public static Builder over(List<Tensor> parameters) {
    return new Builder(parameters);
  }

  /** Plain parameters on a GPU are updated together, those that decay apart from the others. */
  @Override
  void updateAll() {
    List<Tensor> decaying = new ArrayList<>();
    List<Tensor> others = new ArrayList<>();
    @Nullable Device device = null;
    for (int i = 0; i < parameters().size(); i++) {
      Tensor p = parameters().get(i);
      Tensor g = p.grad();
      if (g == null) {
        continue;
      }
      boolean together =
          p.kind() == null
              && g.kind() == null
              && p.device().isCuda()
              && (device == null || p.device().equals(device));
      if (!together) {
        update(i, p, g);
        continue;
      }
      device = p.device();
      prepare(i, p);
      Collections.addAll(decayed.test(p) ? decaying : others, p, g, mean(i), square(i));
    }
    updateTogether(decaying, weightDecay);
    updateTogether(others, 0);
  }

  private void updateTogether(List<Tensor> tensors, double decay) {
    if (!tensors.isEmpty()) {
      Updates.adamwAll(
          tensors.toArray(Tensor[]::new), learningRate(), beta1, beta2, eps, decay, steps());
    }
  }

  private void prepare(int index, Tensor parameter) {
    if (means[index] == null) {
      means[index] = zerosLike(parameter);
      squares[index] = zerosLike(parameter);
    }
  }

  private Tensor mean(int index) {
    return Objects.requireNonNull(means[index]);
  }

  private Tensor square(int index) {
    return Objects.requireNonNull(squares[index]);
  }

  @Override
  Map<String, @Nullable Tensor[]> slots() {
    Map<String, @Nullable Tensor[]> slots = new LinkedHashMap<>();
    slots.put("exp_avg", means);
    slots.put("exp_avg_sq", squares);
    return slots;
  }

  @Override
  void update(int index, Tensor parameter, Tensor gradient) {
    prepare(index, parameter);
    Tensor unused =
        Updates.adamw(
            parameter,
            gradient,
            mean(index),
            square(index),
            learningRate(),
            beta1,
            beta2,
            eps,
            decayed.test(parameter) ? weightDecay : 0,
            steps());
  }

  @Override
  public void close() {
    closeAll(means);
    closeAll(squares);
  }
}
