package dev.weft.dtensor;

import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The sharding rules by operator name. Thread-safe. */
final class Rules {
  private static final Map<String, Sharding.Rule> RULES = new ConcurrentHashMap<>();

  static {
    PointwiseRules.addTo(RULES);
    ReductionRules.addTo(RULES);
    MatmulRules.addTo(RULES);
    ViewRules.addTo(RULES);
    NeuralRules.addTo(RULES);
    IndexRules.addTo(RULES);
    RandomRules.addTo(RULES);
  }

  private Rules() {}

  static void register(String op, Sharding.Rule rule) {
    RULES.put(op, rule);
    Propagation.forget();
  }

  static Sharding.@Nullable Rule get(Op op) {
    return RULES.get(op.name());
  }

  static boolean has(String op) {
    return RULES.containsKey(op);
  }

  /**
   * The rule of an operator.
   *
   * @throws UnsupportedOperationException if there is none
   */
  static Sharding.Rule find(Op op, List<DTensorSpec> inputs) {
    Sharding.Rule rule = RULES.get(op.name());
    if (rule == null && ReplicationFallback.isAllowed()) {
      return ReplicationFallback.INSTANCE;
    }
    if (rule == null) {
      throw new UnsupportedOperationException(
          "operator '"
              + op
              + "' has no sharding rule, so it cannot run on "
              + inputs
              + "; add one with Sharding.register(\""
              + op
              + "\", rule), redistribute its inputs and use toLocal(), or let such operators run"
              + " on whole tensors with DTensor.allowReplicationFallback(true)");
    }
    return rule;
  }

  /** The global shapes and dtypes of the results. */
  static TensorSpec[] outputs(Op op, Attrs attrs, Tensor[] inputs) {
    if (op.form() != Op.Form.VIEW) {
      return op.specRule().infer(inputs, attrs);
    }
    StridedTensor whole = Tensors.empty(inputs[0].dtype(), Device.META, inputs[0].shape());
    StridedTensor view = op.viewRule().view(whole, attrs);
    return TensorSpec.one(view.shape(), view.dtype());
  }
}
