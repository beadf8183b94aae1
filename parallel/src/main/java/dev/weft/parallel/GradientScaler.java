package dev.weft.parallel;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.optim.Clipping;
import dev.weft.optim.Optimizer;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.List;
import java.util.Map;

/**
 * Keeps small gradients of float16 from vanishing: the loss is multiplied by a scale, gradients are
 * divided by it before the update, and an update whose gradients are not finite is left out on all
 * ranks, after which the scale is halved. After so many updates without that it is doubled.
 *
 * <p>A step is {@code scale(loss).backward()}, {@code unscale(optimizer)} (after which gradients
 * may be clipped), {@code step(optimizer)}, {@code update()}. bfloat16 needs none of it. Used by
 * the thread that acts for a rank; all ranks call alike.
 */
public final class GradientScaler {
  private final List<ProcessGroup> groups;
  private double scale = 65536;
  private int growthInterval = 2000;
  private int good;
  private boolean unscaled;
  private boolean finite = true;

  private GradientScaler(List<ProcessGroup> groups) {
    this.groups = groups;
  }

  /**
   * A scaler that starts at 65536 and doubles after 2000 good updates.
   *
   * @param groups whose ranks hold other gradients of the same model, such as those of a pipeline;
   *     ranks that share distributed parameters, or average gradients, agree without
   */
  public static GradientScaler of(ProcessGroup... groups) {
    return new GradientScaler(List.of(groups));
  }

  /** Starts with another scale. */
  public GradientScaler withScale(double first) {
    if (!(first > 0) || Double.isInfinite(first)) {
      throw new IllegalArgumentException("scale is " + first + "; expected more than 0");
    }
    scale = first;
    return this;
  }

  /** Doubles the scale after another number of good updates. */
  public GradientScaler withGrowthInterval(int updates) {
    if (updates < 1) {
      throw new IllegalArgumentException("growthInterval is " + updates + "; expected 1 or more");
    }
    growthInterval = updates;
    return this;
  }

  /** The scale now. */
  public double scale() {
    return scale;
  }

  /** A loss times the scale; float32, since the scale may be more than float16 can hold. */
  public Tensor scale(Tensor loss) {
    return loss.mul(scale);
  }

  /**
   * Divides the gradients of an optimiser's parameters by the scale. The host waits for them.
   *
   * @return the norm of the divided gradients over all ranks that share parameters; not finite
   *     where they are not
   * @throws IllegalStateException if that was done since the last {@link #update}
   */
  public double unscale(Optimizer optimizer) {
    if (unscaled) {
      throw new IllegalStateException(
          "unscale was called already since the last update; gradients would be divided twice");
    }
    unscaled = true;
    double norm = Clipping.gradNorm(optimizer.parameters());
    finite = everywhere(Double.isFinite(norm));
    double inverse = 1 / scale;
    Autograd.noGrad(
        () -> {
          for (Tensor p : optimizer.parameters()) {
            Tensor g = p.grad();
            if (g != null) {
              Tensor unused = InPlace.mul(g, inverse);
            }
          }
        });
    return norm * inverse;
  }

  private boolean everywhere(boolean mine) {
    long bad = mine ? 0 : 1;
    try (TensorScope scope = TensorScope.open()) {
      for (ProcessGroup g : groups) {
        Tensor any = Tensor.of(new long[] {bad}, 1).to(g.controlDevice());
        Work unused = g.allReduce(any, ReduceOp.MAX);
        bad = any.toLongArray()[0];
      }
    }
    return bad == 0;
  }

  /**
   * Updates the parameters if all gradients are finite; divides them first unless {@link #unscale}
   * has.
   *
   * @return whether parameters were updated, the same on all ranks
   */
  public boolean step(Optimizer optimizer) {
    if (!unscaled) {
      double unused = unscale(optimizer);
    }
    if (finite) {
      optimizer.step();
    }
    return finite;
  }

  /** Ends a step: changes the scale if it is time to. */
  public void update() {
    if (!unscaled) {
      throw new IllegalStateException("update was called with no step before it");
    }
    unscaled = false;
    good = finite ? good + 1 : 0;
    if (!finite) {
      scale /= 2;
    } else if (good == growthInterval) {
      scale *= 2;
      good = 0;
    }
  }

  /** What a checkpoint needs: {@code scale} and {@code goodUpdates}. */
  public Map<String, Double> scalars() {
    return Map.of("scale", scale, "goodUpdates", (double) good);
  }

  /** Goes on from {@link #scalars}. */
  public void loadScalars(Map<String, Double> scalars) {
    Double saved = scalars.get("scale");
    Double updates = scalars.get("goodUpdates");
    if (saved == null || updates == null) {
      throw new IllegalArgumentException(
          "scalars are " + scalars + "; expected scale and goodUpdates");
    }
    GradientScaler unused = withScale(saved);
    good = updates.intValue();
  }
}
