package dev.weft.parallel.pipeline;

import dev.weft.nn.Recompute;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import java.util.HashMap;
import java.util.Map;

/**
 * A value that goes from one part of a model to a later one, past those in between: the earlier
 * stashes it, the later pops it, under one name. Parts that run on one rank hand it over directly;
 * between stages of a {@link Pipeline} it travels from the one to the other (see {@link
 * Pipeline#withSkip}), and its gradient back. Each forward stashes and pops it once. The idea is
 * torchgpipe's (Kim et al., 2020). Used by the thread that runs forward.
 */
public final class Skip {
  private static final ThreadLocal<Map<String, Tensor>> STASHED =
      ThreadLocal.withInitial(HashMap::new);

  private final String name;

  private Skip(String name) {
    this.name = name;
  }

  /** The value of a name. */
  public static Skip of(String name) {
    return new Skip(name);
  }

  /**
   * Puts the value away.
   *
   * @return the value
   * @throws IllegalStateException if the one before has not been popped
   */
  public Tensor stash(Tensor value) {
    check("stash");
    if (STASHED.get().putIfAbsent(name, value) != null) {
      throw new IllegalStateException(
          "Skip '" + name + "' was stashed twice; expected a pop in between");
    }
    return value;
  }

  /**
   * Takes the value.
   *
   * @throws IllegalStateException if there is none
   */
  public Tensor pop() {
    check("pop");
    Tensor value = STASHED.get().remove(name);
    if (value == null) {
      throw new IllegalStateException(
          "Skip '"
              + name
              + "' was popped, but not stashed before; a pipeline must know of it by withSkip");
    }
    return value;
  }

  private void check(String what) {
    if (Autograd.isInBackward() || Autograd.savedTensorHooks() instanceof Recompute) {
      throw new IllegalStateException(
          "Skip '"
              + name
              + "': "
              + what
              + " in a piece that is recomputed; expected it outside of such pieces");
    }
  }

  /** Replaces what is stashed on this thread; returns what was. */
  static Map<String, Tensor> exchange(Map<String, Tensor> values) {
    Map<String, Tensor> before = STASHED.get();
    STASHED.set(values);
    return before;
  }
}
