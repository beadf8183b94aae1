package dev.weft.tensor.autograd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.nn.Autocast;
import dev.weft.nn.Function;
import dev.weft.nn.LayerNorm;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.Recompute;
import dev.weft.nn.Sequential;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.memory.MemoryAccount;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SplitBackwardTest {
  private static Tensor random(int seed, long... shape) {
    return Random.randn(new Generator(seed), DType.FLOAT32, shape);
  }

  private static Sequential model() {
    Linear tied = new Linear(random(4, 6, 6), null);
    return new Sequential(
        new Linear(random(1, 6, 6), random(2, 6)),
        new LayerNorm(6, 1e-5),
        tied,
        new Function(Activations::gelu),
        tied,
        new Linear(random(5, 6, 6), null));
  }

  private static List<float[]> weightGradients(Module m) {
    return m.parameters().stream().map(p -> p.grad().toFloatArray()).toList();
  }

  /** Both passes give the bits of one, with tied weights, with casts and with recomputation. */
  @ParameterizedTest
  @ValueSource(strings = {"plain", "autocast", "recompute"})
  void theTwoPassesTogetherAreBackward(String how) {
    List<List<float[]>> all = new ArrayList<>();
    for (boolean split : new boolean[] {false, true}) {
      Sequential m = model();
      if (how.equals("recompute")) {
        m.children().values().stream().distinct().forEach(Recompute::of);
      }
      Tensor x = random(9, 4, 6).requiresGrad(true);
      try (TensorScope scope = TensorScope.open();
          Autocast low = how.equals("autocast") ? Autocast.to(DType.BFLOAT16) : Autocast.off()) {
        Tensor y = m.call(x);
        Tensor loss = Reductions.sum(Pointwise.mul(y, y));
        List<float[]> gradients = new ArrayList<>();
        if (split) {
          SplitBackward rest = Autograd.backwardInputs(List.of(loss), nulls(1), List.of(x));
          assertThat(m.parameters()).allMatch(p -> p.grad() == null);
          assertThat(x.grad()).isNull();
          gradients.add(rest.inputGradients().get(0).toFloatArray());
          rest.finish();
        } else {
          loss.backward();
          gradients.add(x.grad().toFloatArray());
        }
        gradients.addAll(weightGradients(m));
        all.add(gradients);
      }
    }
    for (int i = 0; i < all.get(0).size(); i++) {
      assertThat(all.get(1).get(i)).containsExactly(all.get(0).get(i));
    }
  }

  private static List<Tensor> nulls(int n) {
    List<Tensor> list = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      list.add(null);
    }
    return list;
  }

  /** The products for inputs (matmul) and for weights (contract_leading) that a piece makes. */
  private static List<String> products(Runnable body) {
    List<String> names = new ArrayList<>();
    try (Dispatcher.Installed counting =
        Dispatcher.install(
            call -> {
              if (List.of("matmul", "contract_leading").contains(call.op().name())) {
                names.add(call.op().name());
              }
              return call.proceed();
            })) {
      body.run();
    }
    return names;
  }

  /** The products for weights are made in the second pass and not before. */
  @Test
  void theWorkForWeightsIsDoneLater() {
    Tensor w1 = random(1, 6, 6).requiresGrad(true);
    Tensor w2 = random(2, 6, 6).requiresGrad(true);
    Tensor x = random(3, 4, 6).requiresGrad(true);
    Tensor loss = Reductions.sum(MatMul.matmul(MatMul.matmul(x, w1), w2));
    List<SplitBackward> rest = new ArrayList<>();
    List<String> first =
        products(() -> rest.add(Autograd.backwardInputs(List.of(loss), nulls(1), List.of(x))));
    List<String> second = products(rest.get(0)::finish);
    assertThat(first).containsExactly("matmul", "matmul");
    assertThat(second).containsExactly("contract_leading", "contract_leading");
  }

  @Test
  void withoutInputsEverythingIsLeft() {
    Sequential m = model();
    Tensor y = m.call(random(9, 4, 6));
    Tensor loss = Reductions.sum(Pointwise.mul(y, y));
    List<SplitBackward> rest = new ArrayList<>();
    List<String> first =
        products(() -> rest.add(Autograd.backwardInputs(List.of(loss), nulls(1), List.of())));
    assertThat(first).isEmpty();
    rest.get(0).finish();
    Sequential other = model();
    Tensor z = other.call(random(9, 4, 6));
    Reductions.sum(Pointwise.mul(z, z)).backward();
    List<float[]> want = weightGradients(other);
    List<float[]> got = weightGradients(m);
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(i)).containsExactly(want.get(i));
    }
  }

  /** Hooks on results in the first pass; those of a weight, once it is complete, in the second. */
  @Test
  void hooksRunOnceEach() {
    Sequential m = model();
    List<String> log = new ArrayList<>();
    Tensor tied = m.parameter("2.weight");
    Autograd.postAccumulateHook(tied, p -> log.add("tied"));
    Tensor x = random(9, 4, 6).requiresGrad(true);
    Tensor y = m.call(x);
    Autograd.hook(
        y,
        g -> {
          log.add("output");
          Autograd.beforeWeights(() -> log.add("before weights"));
          Autograd.afterBackward(() -> log.add("after inputs"));
          assertThat(Autograd.isInInputPass()).isTrue();
          return g;
        });
    SplitBackward rest = Autograd.backwardInputs(List.of(Reductions.sum(y)), nulls(1), List.of(x));
    log.add("between");
    rest.finish();
    assertThat(log).containsExactly("output", "after inputs", "between", "before weights", "tied");
  }

  @Test
  void nothingIsLeftBehindAndThereIsOneSecondPass() {
    Sequential m = model();
    // Garbage of other tests does not count.
    try (MemoryAccount account = MemoryAccount.open()) {
      long before = 0;
      for (int round = 0; round < 4; round++) {
        SplitBackward rest;
        try (TensorScope scope = TensorScope.open()) {
          Tensor x = random(9, 64, 6).requiresGrad(true);
          Tensor loss = Reductions.sum(m.call(x));
          rest = Autograd.backwardInputs(List.of(loss), nulls(1), List.of(x));
        }
        assertThat(account.liveBytes()).isGreaterThan(before);
        if (round % 2 == 0) {
          rest.finish();
          m.zeroGrad();
        } else {
          rest.close();
        }
        assertThatThrownBy(rest::finish)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("second pass has run already");
        if (round > 0) {
          assertThat(account.liveBytes()).isEqualTo(before);
        }
        before = account.liveBytes();
      }
    }
  }
}
