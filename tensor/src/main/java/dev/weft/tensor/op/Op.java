package dev.weft.tensor.op;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.autograd.Backward;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * An entry of the operator catalogue: a name, how the result looks, how it is computed and how it
 * is differentiated. Immutable after registration but for its kernels, which devices add; safe for
 * any thread.
 *
 * <p>There are four forms. A <b>function</b> computes new tensors with a {@link Kernel} per device.
 * A <b>view</b> makes a tensor over the same storage. An <b>in-place</b> operator writes its first
 * input. A <b>composite</b> is Java code over tensors of any kind, for what is not a computation on
 * memory (a collective, a redistribution) and still takes part in autograd and interception.
 */
public final class Op {
  /** The forms of an operator. */
  public enum Form {
    /** Computes new tensors. */
    FUNCTION,
    /** Shares its input's storage. */
    VIEW,
    /** Writes its first input. */
    IN_PLACE,
    /** Java code over tensors of any kind. */
    COMPOSITE
  }

  /** The shapes and dtypes of a function's results. Works on any tensor kind and on meta. */
  @FunctionalInterface
  public interface SpecRule {
    /** Infers the results; refuses bad arguments with an IllegalArgumentException. */
    TensorSpec[] infer(Tensor[] inputs, Attrs attrs);
  }

  /** A view's result over its input's storage. */
  @FunctionalInterface
  public interface ViewRule {
    /** Makes the view. */
    StridedTensor view(StridedTensor input, Attrs attrs);
  }

  /** A composite's code. */
  @FunctionalInterface
  public interface Composite {
    /** Runs it; gradients are not recorded inside. */
    Tensor[] run(Tensor[] inputs, Attrs attrs);
  }

  /** Which tensors a node keeps for backward. */
  public record Saves(boolean inputs, boolean outputs) {
    /** Neither. */
    public static final Saves NOTHING = new Saves(false, false);

    /** All inputs. */
    public static final Saves INPUTS = new Saves(true, false);

    /** All outputs. */
    public static final Saves OUTPUTS = new Saves(false, true);

    /** Inputs and outputs. */
    public static final Saves BOTH = new Saves(true, true);
  }

  private static final Map<String, Op> CATALOGUE = new ConcurrentHashMap<>();

  private final String name;
  private final Form form;
  private final @Nullable SpecRule specRule;
  private final @Nullable ViewRule viewRule;
  private final @Nullable Composite composite;
  private Saves saves = Saves.NOTHING;
  private @Nullable Backward backward;
  private boolean differentiable = true;
  private volatile @Nullable Kernel cpu;
  private volatile @Nullable Kernel cuda;

  private Op(
      String name,
      Form form,
      @Nullable SpecRule specRule,
      @Nullable ViewRule viewRule,
      @Nullable Composite composite) {
    this.name = name;
    this.form = form;
    this.specRule = specRule;
    this.viewRule = viewRule;
    this.composite = composite;
  }

  /** A function with its shape rule and its CPU kernel. */
  public static Op function(String name, SpecRule rule, Kernel cpu) {
    Op op = new Op(name, Form.FUNCTION, rule, null, null);
    op.cpu = cpu;
    return op.register();
  }

  /** An in-place operator; its result is its first input. */
  public static Op inPlace(String name, SpecRule rule, Kernel cpu) {
    Op op = new Op(name, Form.IN_PLACE, rule, null, null);
    op.cpu = cpu;
    return op.register();
  }

  /** A view. */
  public static Op view(String name, ViewRule rule) {
    return new Op(name, Form.VIEW, null, rule, null).register();
  }

  /** Java code over tensors of any kind. */
  public static Op composite(String name, Composite code) {
    return new Op(name, Form.COMPOSITE, null, null, code).register();
  }

  private Op register() {
    Op before = CATALOGUE.putIfAbsent(name, this);
    if (before != null) {
      throw new IllegalStateException("operator '" + name + "' is in the catalogue already");
    }
    return this;
  }

  /** Adds the backward formula and what it needs; to be called where the operator is made. */
  public Op gradient(Saves saves, Backward backward) {
    this.saves = saves;
    this.backward = backward;
    return this;
  }

  /** Says that no gradient exists or is wanted: for the test that walks the catalogue. */
  public Op notDifferentiable() {
    this.differentiable = false;
    return this;
  }

  /** False where the operator was declared to have no gradient. */
  public boolean isDifferentiable() {
    return differentiable;
  }

  /** Adds or replaces the CUDA kernel. */
  public Op cuda(Kernel kernel) {
    this.cuda = kernel;
    return this;
  }

  /** All operators by name; a live, unmodifiable view. */
  public static Map<String, Op> catalogue() {
    return java.util.Collections.unmodifiableMap(CATALOGUE);
  }

  /** The name, such as {@code add}; in-place ones end in an underscore. */
  public String name() {
    return name;
  }

  /** Function, view, in-place or composite. */
  public Form form() {
    return form;
  }

  /** The shape rule of a function or in-place operator. */
  public SpecRule specRule() {
    if (specRule == null) {
      throw new IllegalStateException("operator '" + name + "' (" + form + ") has no shape rule");
    }
    return specRule;
  }

  /** The rule of a view. */
  public ViewRule viewRule() {
    if (viewRule == null) {
      throw new IllegalStateException("operator '" + name + "' is not a view");
    }
    return viewRule;
  }

  Composite composite() {
    if (composite == null) {
      throw new IllegalStateException("operator '" + name + "' is not a composite");
    }
    return composite;
  }

  /** What a node of this operator keeps. */
  public Saves saves() {
    return saves;
  }

  /** The backward formula, or null where the operator is not differentiable. */
  public @Nullable Backward backward() {
    return backward;
  }

  /** The kernel of a device type, or null. */
  public @Nullable Kernel kernel(String deviceType) {
    return deviceType.equals("cpu") ? cpu : deviceType.equals("cuda") ? cuda : null;
  }

  @Override
  public String toString() {
    return name;
  }
}
