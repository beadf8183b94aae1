package dev.weft.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ModuleTest {
  /** An embedding whose table is the output layer, too. */
  private static final class Tied extends Module {
    private final Embedding embedding;
    private final Linear head;

    Tied(Tensor table) {
      embedding = registerModule("embedding", new Embedding(table));
      head = registerModule("head", new Linear(embedding.parameter("weight"), null));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      return head.call(embedding.call(inputs[0]));
    }
  }

  private static Sequential mlp() {
    Generator g = new Generator(1);
    return new Sequential(
        new Linear(3, 4, true, g), new Function(Activations::relu), new Linear(4, 2, false, g));
  }

  @Test
  void parametersHavePathsInTheOrderOfRegistration() {
    Sequential m = mlp();
    assertThat(m.namedParameters().keySet()).containsExactly("0.weight", "0.bias", "2.weight");
    assertThat(m.namedModules().keySet()).containsExactly("", "0", "1", "2");
    assertThat(m.parameter("2.weight").shape()).containsExactly(2, 4);
    assertThat(m.parameter("2.weight").requiresGrad()).isTrue();
    assertThatThrownBy(() -> m.parameter("1.weight"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'1.weight'")
        .hasMessageContaining("0.bias");
  }

  @Test
  void parametersOutliveTheScopeTheyWereMadeIn() {
    Sequential m;
    try (TensorScope scope = TensorScope.open()) {
      Tensor w = Tensor.of(new float[] {1, 2}, 1, 2);
      m = new Sequential(new Linear(w, null), new Linear(1, 1, true, new Generator(2)));
      assertThat(scope.size()).isZero();
    }
    assertThat(m.parameter("0.weight").toFloatArray()).containsExactly(1, 2);
    assertThat(m.parameter("1.bias").numel()).isEqualTo(1);
  }

  @Test
  void aReplacedParameterIsUsedByTheNextCall() {
    Linear m = new Linear(Tensor.of(new float[] {1, 2}, 1, 2), null);
    Tensor x = Tensor.of(new float[] {10, 100}, 1, 2);
    assertThat(m.call(x).item()).isEqualTo(210);
    Tensor p = m.replaceParameter("weight", Tensor.of(new float[] {3, 0}, 1, 2));
    assertThat(p.requiresGrad()).isTrue();
    assertThat(m.call(x).item()).isEqualTo(30);
  }

  /** P22: a tie survives the exchange of a parameter, and its gradient is that of both uses. */
  @Test
  void aTieSurvivesReplacement() {
    Tied m = new Tied(Tensor.of(new float[] {1, 2, 3, 4}, 2, 2));
    Tensor p = m.replaceParameter("embedding.weight", Tensor.of(new float[] {1, 0, 0, 1}, 2, 2));
    assertThat(m.parameter("head.weight")).isSameAs(p);
    assertThat(m.parameters()).containsExactly(p);
    assertThat(m.namedParameters()).hasSize(2);
    // Row 0 looked up once, then multiplied with both rows: d(sum)/dW = [w0 + w1, 0] + [w0; w0].
    m.call(Tensor.of(new long[] {0})).sum().backward();
    assertThat(p.grad()).isNotNull();
    assertThat(p.grad().toFloatArray()).containsExactly(2, 1, 1, 0);
  }

  @Test
  void hooksChangeInputsAndOutputsUntilTheyAreRemoved() {
    Linear m = new Linear(Tensor.of(new float[] {1, 2}, 1, 2), null);
    Tensor x = Tensor.of(new float[] {10, 100}, 1, 2);
    Module.Handle pre = m.forwardPreHook((module, in) -> new Tensor[] {in[0].mul(2)});
    Module.Handle post = m.forwardHook((module, in, out) -> out.add(in[0].sum()));
    assertThat(m.call(x).item()).isEqualTo(420 + 220);
    pre.close();
    assertThat(m.call(x).item()).isEqualTo(210 + 110);
    post.close();
    assertThat(m.call(x).item()).isEqualTo(210);
  }

  @Test
  void applyReachesChildrenFirstAndTrainTheWholeTree() {
    Sequential m = new Sequential(mlp(), new RmsNorm(2, 1e-5));
    List<String> seen = new ArrayList<>();
    m.apply(x -> seen.add(x.getClass().getSimpleName()));
    assertThat(seen)
        .containsExactly("Linear", "Function", "Linear", "Sequential", "RmsNorm", "Sequential");
    assertThat(m.module("0.2").isTraining()).isTrue();
    m.eval();
    assertThat(m.module("0.2").isTraining()).isFalse();
  }

  @Test
  void zeroGradClearsAllGradients() {
    Sequential m = mlp();
    m.call(Tensor.of(new float[] {1, 2, 3}, 1, 3)).sum().backward();
    assertThat(m.parameters()).allMatch(p -> p.grad() != null);
    m.zeroGrad();
    assertThat(m.parameters()).allMatch(p -> p.grad() == null);
  }

  @Test
  void equalSeedsGiveEqualModules() {
    assertThat(mlp().parameter("0.weight").toFloatArray())
        .isEqualTo(mlp().parameter("0.weight").toFloatArray());
    assertThat(new LayerNorm(3, 1e-5).call(Tensor.of(new float[] {1, 2, 3})).sum().item())
        .isBetween(-1e-6, 1e-6);
  }

  @Test
  void namesAreChecked() {
    assertThatThrownBy(
            () ->
                new Module() {
                  {
                    Tensor unused = registerParameter("a.b", Tensor.of(new float[] {1}));
                  }

                  @Override
                  protected Tensor forward(Tensor... inputs) {
                    return inputs[0];
                  }
                })
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'a.b'");
  }
}
