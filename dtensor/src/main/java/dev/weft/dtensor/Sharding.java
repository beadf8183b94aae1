package dev.weft.dtensor;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How an operator acts on sharded tensors, as data: the ways in which it can run along one mesh
 * dimension. Expansion to meshes of several dimensions and the choice by cost are generic.
 */
public final class Sharding {
  private Sharding() {}

  /**
   * One operator call on global tensors.
   *
   * @param op the operator
   * @param attrs its other arguments
   * @param inputs the tensors' global layouts
   * @param outputs the results' global shapes and dtypes
   */
  public record Call(Op op, Attrs attrs, List<DTensorSpec> inputs, TensorSpec[] outputs) {
    /** The shape of an input. */
    public long[] shape(int input) {
      return inputs.get(input).shape();
    }

    /** The dimensions of an input. */
    public int ndim(int input) {
      return inputs.get(input).shape().length;
    }
  }

  /**
   * A way to run along one mesh dimension: how inputs must lie and how results then lie.
   *
   * @param outputs one for each result
   * @param inputs one for each input
   * @param produced how results lie when the local call is done; where that differs from {@code
   *     outputs} they are reduced at once
   * @param collectives how many collectives that, or the local call itself, takes
   * @param bytes what those move
   */
  public record Row(
      List<Placement> outputs,
      List<Placement> inputs,
      List<Placement> produced,
      int collectives,
      long bytes) {
    /** A row that leaves its results as they are and does not communicate. */
    public Row(List<Placement> outputs, List<Placement> inputs) {
      this(outputs, inputs, outputs, 0, 0);
    }

    /** A row of one result. */
    public static Row of(Placement output, Placement... inputs) {
      return new Row(List.of(output), List.of(inputs));
    }

    /** The same with the communication that its local call needs. */
    public Row communicating(int times, long moved) {
      return new Row(outputs, inputs, produced, times, moved);
    }

    /** The same with its results reduced to whole ones at once. */
    public Row reduced(long resultBytes) {
      return new Row(
          Collections.nCopies(outputs.size(), Replicate.INSTANCE),
          inputs,
          outputs,
          outputs.size(),
          2 * resultBytes);
    }
  }

  /**
   * Placements on the whole mesh.
   *
   * @param inputs for each input, one for each mesh dimension
   * @param outputs for each result, one for each mesh dimension
   */
  public record Layouts(List<List<Placement>> inputs, List<List<Placement>> outputs) {}

  /** The rule of an operator. */
  @FunctionalInterface
  public interface Rule {
    /** All ways; everything replicated need not be among them, it is always possible. */
    List<Row> rows(Call call);

    /**
     * The only way to run, where there is no choice or where mesh dimensions depend on each other;
     * null to choose among the rows.
     *
     * @throws IllegalArgumentException if the operator cannot run on its inputs as they lie
     */
    default @Nullable Layouts layouts(Call call) {
      return null;
    }

    /**
     * True to leave out rows that cut inputs where none of them is cut now; an operator of one
     * input then keeps to the very cuts that are there.
     */
    default boolean followsInputs() {
      return false;
    }

    /** True where no rank may be left with an empty part of an input that is cut. */
    default boolean needsFullParts() {
      return false;
    }

    /**
     * The arguments on which the choice depends; calls that agree in them share one. By default
     * all. A rule that leaves some out runs a local call of its own, which gets the call's.
     */
    default Attrs decisive(Attrs attrs) {
      return attrs;
    }

    /** The arguments for the local call; by default the same. */
    default Attrs localAttrs(Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      return call.attrs();
    }

    /** Runs the local call where it is more than the operator on the parts; by default null. */
    default @Nullable LocalCall localCall(Call call) {
      return null;
    }
  }

  /** A local call of its own. */
  @FunctionalInterface
  public interface LocalCall {
    /** Computes this rank's parts of the results from its parts of the inputs. */
    Tensor[] run(
        Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] localInputs);
  }

  /**
   * Adds the rule of an operator, or replaces it.
   *
   * @param op the operator's name
   */
  public static void register(String op, Rule rule) {
    Rules.register(op, rule);
  }
}
