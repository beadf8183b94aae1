package dev.weft.nn;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/**
 * While one is open on a thread, the modules of this package are made with parameters on device
 * {@code meta}, which take no memory and remember how they are to be filled. What shards or places
 * them then makes this rank's part only, with the values that the whole would have had: random
 * numbers depend on the position in the whole tensor alone. PyTorch's {@code with
 * torch.device("meta")} and {@code reset_parameters} in one.
 *
 * <p>Modules of one's own make their parameters by {@link #tensor} to take part.
 */
public final class DeferredInit implements AutoCloseable {
  private static final ThreadLocal<@Nullable DeferredInit> OPEN = new ThreadLocal<>();
  private static final Map<Tensor, Recipe> RECIPES =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final @Nullable DeferredInit before = OPEN.get();

  private DeferredInit() {
    OPEN.set(this);
  }

  /** Fills a tensor in place, plain or distributed, whatever it holds. */
  @FunctionalInterface
  public interface Fill {
    /**
     * Fills.
     *
     * @param tensor of the shape that was asked for
     * @param generator where random numbers come from; at the same position each time
     */
    void fill(Tensor tensor, Generator generator);
  }

  /** How a tensor is filled, and from which random numbers. */
  private record Recipe(Fill fill, long seed, long offset) {}

  /** Opens one on this thread. */
  public static DeferredInit open() {
    return new DeferredInit();
  }

  /**
   * A new tensor that no scope owns: filled at once, or on device meta with the recipe.
   *
   * @param generator moved on by the tensor's elements either way, if {@code fill} takes as many
   */
  public static Tensor tensor(DType dtype, Generator generator, Fill fill, long... shape) {
    if (OPEN.get() == null) {
      Tensor t = TensorScope.outside(() -> Tensors.empty(dtype, shape));
      Autograd.noGrad(() -> fill.fill(t, generator));
      return t;
    }
    Tensor meta = TensorScope.outside(() -> Tensors.empty(dtype, Device.META, shape));
    RECIPES.put(meta, new Recipe(fill, generator.seed(), generator.offset()));
    Autograd.noGrad(() -> fill.fill(meta, generator));
    return meta;
  }

  /** Whether a tensor has no data yet, but a recipe. */
  public static boolean isDeferred(Tensor t) {
    return RECIPES.containsKey(t);
  }

  /** Where the random numbers of a deferred tensor start: the seed and the position. */
  public static long[] position(Tensor deferred) {
    Recipe recipe = recipe(deferred);
    return new long[] {recipe.seed, recipe.offset};
  }

  /**
   * Fills a tensor by the recipe of another.
   *
   * @param target the same in shape, plain or distributed
   * @param position as of {@link #position}
   */
  public static void fill(Tensor deferred, Tensor target, long[] position) {
    Recipe recipe = recipe(deferred);
    Generator generator = new Generator(position[0]).offset(position[1]);
    Autograd.noGrad(() -> recipe.fill.fill(target, generator));
  }

  private static Recipe recipe(Tensor deferred) {
    Recipe recipe = RECIPES.get(deferred);
    if (recipe == null) {
      throw new IllegalArgumentException(
          deferred.describe() + " has no recipe; expected one made under DeferredInit");
    }
    return recipe;
  }

  /** Has a tensor on device meta that stands for another take over its recipe. */
  static void carry(Tensor from, Tensor to) {
    Recipe recipe = RECIPES.get(from);
    if (recipe != null && to.device().isMeta()) {
      RECIPES.put(to, recipe);
    }
  }

  /** Ends it; to be called by the thread that opened it. */
  @Override
  public void close() {
    if (before == null) {
      OPEN.remove();
    } else {
      OPEN.set(before);
    }
  }
}
