package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Norms;
import dev.weft.tensor.op.Reductions;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The graphs of autograd.json: from leaves to a loss. */
final class Graphs {
  private Graphs() {}

  /** Runs a graph. On whole tensors {@code mesh} is null, and placements have no effect. */
  static Tensor run(String graph, JsonNode a, List<Tensor> t, @Nullable DeviceMesh mesh) {
    return switch (graph) {
      case "op_sq" -> square(op(a, t));
      case "op_sum" -> Reductions.sum(op(a, t));
      case "op_loss" -> op(a, t);
      case "op_redist_sq" -> square(moved(op(a, t), a, mesh));
      case "mlp" -> mlp(t);
      case "redistribute_mid" -> {
        Tensor h = moved(MatMul.linear(t.get(0), t.get(1), null), a, mesh);
        yield square(MatMul.linear(Activations.tanh(h), t.get(2), null));
      }
      case "redistribute_only" -> square(moved(t.get(0), a, mesh));
      case "to_local" -> ofRank(local(t.get(0), a));
      case "linear_to_local" -> ofRank(local(MatMul.linear(t.get(0), t.get(1), null), a));
      case "full_tensor" -> ofRank(full((DTensor) t.get(0), a));
      case "from_local" -> square(fromLocal(t.get(0), a, mesh));
      case "residual_norm" -> residualNorm(t);
      case "head" -> {
        Tensor logits = MatMul.linear(t.get(0), t.get(1), null);
        String loss = a.has("loss") ? a.get("loss").asText() : "cross_entropy";
        yield (Tensor)
            OpTable.call(
                    loss,
                    com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.objectNode(),
                    List.of(logits, t.get(2)))
                .get(0);
      }
      default -> throw new CaseRunner.Mismatch("unknown graph " + graph);
    };
  }

  private static Tensor op(JsonNode a, List<Tensor> t) {
    JsonNode attrs =
        a.has("attrs")
            ? a.get("attrs")
            : com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.objectNode();
    return (Tensor) OpTable.call(a.get("op").asText(), attrs, t).get(0);
  }

  private static Tensor square(Tensor y) {
    return y.mul(y).mean();
  }

  private static Tensor moved(Tensor x, JsonNode a, @Nullable DeviceMesh mesh) {
    return mesh == null ? x : ((DTensor) x).redistribute(Specs.placements(a.get("to")));
  }

  private static Tensor mlp(List<Tensor> t) {
    Tensor h = Activations.gelu(MatMul.linear(t.get(0), t.get(1), t.get(2)));
    return square(MatMul.linear(h, t.get(3), t.get(4)));
  }

  private static @Nullable List<Placement> gradPlacements(JsonNode a) {
    return Json.has(a, "grad_placements") ? Specs.placements(a.get("grad_placements")) : null;
  }

  private static Tensor local(Tensor x, JsonNode a) {
    List<Placement> grad = gradPlacements(a);
    return grad == null ? ((DTensor) x).toLocal() : ((DTensor) x).toLocal(grad);
  }

  private static Tensor full(DTensor x, JsonNode a) {
    List<Placement> grad = gradPlacements(a);
    return grad == null ? x.fullTensor() : x.fullTensor(grad);
  }

  private static Tensor ofRank(Tensor x) {
    return Reductions.sum(x.mul(x)).mul(Distributed.rank() + 1);
  }

  private static Tensor fromLocal(Tensor x, JsonNode a, @Nullable DeviceMesh mesh) {
    if (mesh == null) {
      throw new CaseRunner.Mismatch("from_local has no dense counterpart");
    }
    DTensor.FromLocal options = DTensor.FromLocal.DEFAULT;
    List<Placement> grad = gradPlacements(a);
    if (grad != null) {
      options = options.withGradPlacements(grad);
    }
    DTensor d = DTensor.fromLocal(x, mesh, Specs.placements(a.get("placements")), options);
    return a.has("to") ? d.redistribute(Specs.placements(a.get("to"))) : d;
  }

  private static Tensor residualNorm(List<Tensor> t) {
    Tensor h = t.get(0).add(MatMul.linear(t.get(0), t.get(1), null));
    long[] shape = {h.size(-1)};
    return square(Norms.layerNorm(h, shape, t.get(2), t.get(3), 1e-5).mul(h));
  }
}
