package dev.weft.nn;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A part of a model: named parameters, named sub-modules and a forward computation, which hooks may
 * change. A tree of modules belongs to one thread at a time.
 *
 * <p>Parameters and buffers belong to their module and to no {@link dev.weft.tensor.TensorScope}.
 * They are looked up by name at every call, so that a parameter can be replaced (by a distributed
 * one, say). A tensor registered under several names is one parameter that is tied.
 */
public abstract class Module {
  private final Map<String, Tensor> parameters = new LinkedHashMap<>();
  private final Map<String, Tensor> buffers = new LinkedHashMap<>();
  private final Map<String, Module> modules = new LinkedHashMap<>();
  private final List<PreHook> preHooks = new ArrayList<>();
  private final List<PostHook> postHooks = new ArrayList<>();
  private @Nullable Computation replacement;
  private boolean training = true;

  /** Changes the inputs of a call before the forward computation. */
  @FunctionalInterface
  public interface PreHook {
    /** Returns the inputs to go on with. */
    Tensor[] apply(Module module, Tensor[] inputs);
  }

  /** Changes the output of a call after the forward computation. */
  @FunctionalInterface
  public interface PostHook {
    /** Returns the output to go on with. */
    Tensor apply(Module module, Tensor[] inputs, Tensor output);
  }

  /** A computation in the place of a module's own. */
  @FunctionalInterface
  public interface Computation {
    /**
     * Computes the output.
     *
     * @param forward the module's own computation
     */
    Tensor apply(Tensor[] inputs, Function<Tensor[], Tensor> forward);
  }

  /** Removes a hook again. */
  public interface Handle extends AutoCloseable {
    @Override
    void close();
  }

  /** For the kinds of modules. */
  protected Module() {}

  /** The computation; call {@link #call} instead, which runs the hooks. */
  protected abstract Tensor forward(Tensor... inputs);

  /** Computes the output, with hooks. */
  public final Tensor call(Tensor... inputs) {
    Tensor[] in = inputs;
    for (PreHook hook : List.copyOf(preHooks)) {
      in = hook.apply(this, in);
    }
    Computation other = replacement;
    Tensor out = other == null ? forward(in) : other.apply(in, this::forward);
    for (PostHook hook : List.copyOf(postHooks)) {
      out = hook.apply(this, in, out);
    }
    return out;
  }

  /** Adds a hook that sees the inputs; hooks run in the order they were added. */
  public final Handle forwardPreHook(PreHook hook) {
    return forwardPreHook(hook, false);
  }

  /**
   * Adds a hook that sees the inputs.
   *
   * @param first whether it runs before those that are there, instead of after them
   */
  public final Handle forwardPreHook(PreHook hook, boolean first) {
    preHooks.add(first ? 0 : preHooks.size(), hook);
    return () -> preHooks.remove(hook);
  }

  /** Adds a hook that sees the output; hooks run in the order they were added. */
  public final Handle forwardHook(PostHook hook) {
    postHooks.add(hook);
    return () -> postHooks.remove(hook);
  }

  /**
   * Has the module computed in another way that gives the same values, such as one that overlaps it
   * with communication. One at a time; hooks run around it.
   */
  public final Handle replaceForward(Computation computation) {
    if (replacement != null) {
      throw new IllegalStateException(
          getClass().getSimpleName() + ": the computation has been replaced already");
    }
    replacement = computation;
    return () -> replacement = null;
  }

  // ---- registration ----

  /**
   * Adds a parameter, which then requires a gradient and belongs to this module.
   *
   * @return the parameter: the tensor itself, or one without history on the same data
   */
  protected final Tensor registerParameter(String name, Tensor value) {
    checkName(name);
    Tensor p = own(value);
    DeferredInit.carry(value, p);
    if (!p.requiresGrad()) {
      p.requiresGrad(true);
    }
    parameters.put(name, p);
    return p;
  }

  /** Adds a tensor that is part of the module's state and not trained. */
  protected final Tensor registerBuffer(String name, Tensor value) {
    checkName(name);
    Tensor b = own(value);
    buffers.put(name, b);
    return b;
  }

  /** Adds a sub-module. */
  @CanIgnoreReturnValue
  protected final <M extends Module> M registerModule(String name, M module) {
    checkName(name);
    modules.put(name, module);
    return module;
  }

  private static Tensor own(Tensor value) {
    value.disown();
    return value.isLeaf() ? value : value.detach();
  }

  private void checkName(String name) {
    if (name.isEmpty() || name.indexOf('.') >= 0) {
      throw new IllegalArgumentException(
          "name '" + name + "' is not valid; expected one without dots");
    }
    if (parameters.containsKey(name) || buffers.containsKey(name) || modules.containsKey(name)) {
      throw new IllegalArgumentException(
          "name '" + name + "' is taken in " + getClass().getSimpleName());
    }
  }

  // ---- the tree ----

  /**
   * The parameter of a path such as {@code layers.0.attn.wq.weight}.
   *
   * @throws IllegalArgumentException if there is none
   */
  public final Tensor parameter(String path) {
    Module owner = ownerOf(path);
    Tensor p = owner.parameters.get(leaf(path));
    if (p == null) {
      throw missing("parameter", path, namedParameters().keySet());
    }
    return p;
  }

  /** The buffer of a path. */
  public final Tensor buffer(String path) {
    Module owner = ownerOf(path);
    Tensor b = owner.buffers.get(leaf(path));
    if (b == null) {
      throw missing("buffer", path, namedBuffers().keySet());
    }
    return b;
  }

  /** Whether this module itself has a parameter of a name. */
  public final boolean hasParameter(String name) {
    return parameters.containsKey(name);
  }

  /** The sub-module of a path; the empty path is this module. */
  public final Module module(String path) {
    Module m = this;
    if (path.isEmpty()) {
      return m;
    }
    for (String part : path.split("\\.", -1)) {
      Module next = m.modules.get(part);
      if (next == null) {
        throw missing("module", path, namedModules().keySet());
      }
      m = next;
    }
    return m;
  }

  private Module ownerOf(String path) {
    int dot = path.lastIndexOf('.');
    return dot < 0 ? this : module(path.substring(0, dot));
  }

  private static String leaf(String path) {
    return path.substring(path.lastIndexOf('.') + 1);
  }

  private static IllegalArgumentException missing(String what, String path, Set<String> names) {
    return new IllegalArgumentException(
        what + " '" + path + "' does not exist; expected one of " + names);
  }

  /** Own sub-modules by name. */
  public final Map<String, Module> children() {
    return Collections.unmodifiableMap(modules);
  }

  /** This module (under the empty path) and all below by path, parents first. */
  public final Map<String, Module> namedModules() {
    Map<String, Module> out = new LinkedHashMap<>();
    visit("", out::put);
    return out;
  }

  /** All parameters by path in the order of registration; a tied one under each of its paths. */
  public final Map<String, Tensor> namedParameters() {
    Map<String, Tensor> out = new LinkedHashMap<>();
    collect("", m -> m.parameters, out);
    return out;
  }

  /** All buffers by path. */
  public final Map<String, Tensor> namedBuffers() {
    Map<String, Tensor> out = new LinkedHashMap<>();
    collect("", m -> m.buffers, out);
    return out;
  }

  /** All parameters in the order of registration, a tied one once. */
  public final List<Tensor> parameters() {
    Set<Tensor> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    List<Tensor> out = new ArrayList<>();
    for (Tensor p : namedParameters().values()) {
      if (seen.add(p)) {
        out.add(p);
      }
    }
    return out;
  }

  private void visit(String path, BiConsumer<String, Module> visitor) {
    visitor.accept(path, this);
    modules.forEach((name, m) -> m.visit(join(path, name), visitor));
  }

  private static void collectOwn(String path, Map<String, Tensor> own, Map<String, Tensor> out) {
    own.forEach((name, t) -> out.put(join(path, name), t));
  }

  private void collect(
      String path,
      java.util.function.Function<Module, Map<String, Tensor>> part,
      Map<String, Tensor> out) {
    collectOwn(path, part.apply(this), out);
    modules.forEach((name, m) -> m.collect(join(path, name), part, out));
  }

  private static String join(String path, String name) {
    return path.isEmpty() ? name : path + "." + name;
  }

  /**
   * Puts another tensor in a parameter's place, at every path of this tree that is tied to it.
   *
   * @param value requires a gradient if the old one did; belongs to the module from now on
   * @return the new parameter
   */
  public final Tensor replaceParameter(String path, Tensor value) {
    Tensor before = parameter(path);
    Tensor p = own(value);
    if (before.requiresGrad() != p.requiresGrad()) {
      p.requiresGrad(before.requiresGrad());
    }
    DeferredInit.carry(before, p);
    for (Module m : namedModules().values()) {
      m.parameters.replaceAll((name, t) -> t == before ? p : t);
    }
    return p;
  }

  /** Puts another tensor in a buffer's place. */
  public final Tensor replaceBuffer(String path, Tensor value) {
    Tensor before = buffer(path);
    Tensor b = own(value);
    for (Module m : namedModules().values()) {
      m.buffers.replaceAll((name, t) -> t == before ? b : t);
    }
    return b;
  }

  /**
   * Moves all parameters and buffers to a device; each that was elsewhere is replaced by a new
   * tensor, so move before an optimiser is made. Gradients do not come along.
   */
  @CanIgnoreReturnValue
  public final Module to(Device device) {
    namedParameters()
        .forEach(
            (path, p) -> {
              if (parameter(path) == p && !p.device().equals(device)) {
                Tensor unused = replaceParameter(path, copied(p, device));
              }
            });
    namedBuffers()
        .forEach(
            (path, b) -> {
              if (buffer(path) == b && !b.device().equals(device)) {
                Tensor unused = replaceBuffer(path, copied(b, device));
              }
            });
    return this;
  }

  private static Tensor copied(Tensor t, Device device) {
    return TensorScope.outside(() -> Autograd.noGrad(() -> t.to(device)));
  }

  /** Calls a function with every module of the tree, children first. */
  public final Module apply(Consumer<Module> action) {
    modules.values().forEach(m -> m.apply(action));
    action.accept(this);
    return this;
  }

  /** Switches the whole tree between training and evaluation. */
  public final Module train(boolean mode) {
    return apply(m -> m.training = mode);
  }

  /** Switches the whole tree to evaluation. */
  public final Module eval() {
    return train(false);
  }

  /** Whether this module is in training; it is at first. */
  public final boolean isTraining() {
    return training;
  }

  /** Clears the gradients of all parameters. */
  public final void zeroGrad() {
    for (Tensor p : parameters()) {
      p.setGrad(null);
    }
  }
}
