package dev.weft.dtensor;

import dev.weft.tensor.Generator;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Runs operators on distributed tensors: propagate, redistribute, call on the parts, wrap. */
final class DTensorKind implements TensorKind {
  static final DTensorKind INSTANCE = new DTensorKind();

  private DTensorKind() {}

  @Override
  public String name() {
    return "DTensor";
  }

  @Override
  public Generator generator() {
    return DTensor.generator();
  }

  @Override
  public double squaredGradNorm(List<Tensor> parameters) {
    return Gradients.sumOfSquares(parameters);
  }

  @Override
  public Tensor[] dispatch(Op op, Attrs attrs, Tensor[] inputs) {
    DTensor[] tensors = lift(op, inputs);
    List<DTensorSpec> specs = Arrays.stream(tensors).map(DTensor::spec).toList();
    Propagation.Decision decision = Propagation.decide(op, attrs, specs, tensors);
    // Backward formulas often use an input twice.
    boolean keep = (Dispatcher.isRecorded() && op.saves().inputs()) || Autograd.isInBackward();
    StridedTensor[] locals = new StridedTensor[tensors.length];
    for (int i = 0; i < tensors.length; i++) {
      DTensorSpec wanted = decision.inputs().get(i);
      locals[i] =
          wanted.placements().equals(specs.get(i).placements())
              ? tensors[i].local()
              : redistribute(tensors[i], wanted.placements(), keep);
    }
    if (!specs.get(0).mesh().containsThisRank()) {
      return outsideTheMesh(op, decision, locals[0]);
    }
    Sharding.LocalCall own = decision.localCall();
    Tensor[] results =
        own != null
            ? own.run(
                new Sharding.Call(op, attrs, specs, decision.call().outputs()),
                decision.inputs(),
                decision.outputs(),
                locals)
            : Dispatcher.callAll(op, decision.attrs(), locals);
    if (op.form() == Op.Form.IN_PLACE) {
      return new Tensor[] {inputs[0]};
    }
    Tensor[] wrapped = new Tensor[results.length];
    for (int i = 0; i < results.length; i++) {
      DTensor produced = new DTensor(decision.outputs().get(i), (StridedTensor) results[i]);
      wrapped[i] = produced.redistributeTo(decision.settled().get(i));
    }
    return wrapped;
  }

  /** Through the catalogue, so that interceptors see it. */
  private static StridedTensor redistribute(DTensor t, List<Placement> to, boolean keep) {
    DTensor known = t.gathered();
    if (known != null && known.placements().equals(to)) {
      if (Autograd.isInBackward()) {
        Autograd.afterBackward(() -> t.gathered(null));
      }
      return known.local();
    }
    DTensor moved = t.redistributeTo(to);
    if (keep && Redistribution.plan(t.spec(), to).collectives() > 0) {
      t.gathered(moved);
    }
    return moved.local();
  }

  /** Ranks outside the mesh take no part: their results are empty. */
  private static Tensor[] outsideTheMesh(Op op, Propagation.Decision decision, StridedTensor none) {
    if (op.form() == Op.Form.IN_PLACE) {
      throw new IllegalStateException(op + ": this rank is not in the mesh");
    }
    return decision.outputs().stream()
        .map(s -> new DTensor(s, none.alias()))
        .toArray(Tensor[]::new);
  }

  /** All inputs as distributed tensors on one mesh; single numbers count as replicated. */
  private static DTensor[] lift(Op op, Tensor[] inputs) {
    @Nullable DTensor first = null;
    for (Tensor t : inputs) {
      if (t instanceof DTensor d) {
        if (first != null && !first.mesh().equals(d.mesh())) {
          throw new IllegalArgumentException(
              op
                  + ": the tensors lie on different meshes: "
                  + first.describe()
                  + " and "
                  + d.describe());
        }
        first = first == null ? d : first;
      }
    }
    if (first == null) {
      throw new IllegalStateException(op + ": no distributed tensor among the inputs");
    }
    DTensor[] out = new DTensor[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      if (inputs[i] instanceof DTensor d) {
        out[i] = d;
      } else if (inputs[i].numel() == 1) {
        List<Placement> replicate = Collections.nCopies(first.mesh().ndim(), Replicate.INSTANCE);
        out[i] =
            new DTensor(
                DTensorSpec.of(first.mesh(), replicate, inputs[i].shape(), inputs[i].dtype()),
                inputs[i].plain());
      } else {
        throw new IllegalArgumentException(
            op
                + ": a plain tensor ("
                + inputs[i].describe()
                + ", input "
                + i
                + ") beside a distributed one ("
                + first.describe()
                + "); place it first with distributeTensor or DTensor.fromLocal");
      }
    }
    return out;
  }
}
