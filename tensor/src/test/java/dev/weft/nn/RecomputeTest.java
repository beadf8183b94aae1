package dev.weft.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.memory.MemoryAccount;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RecomputeTest {
  private static final int WIDTH = 6;

  private static Tensor values(int seed, int rows, int columns) {
    float[] v = new float[rows * columns];
    for (int i = 0; i < v.length; i++) {
      v[i] = (float) Math.sin(seed * 17 + i) / 2;
    }
    return Tensor.of(v, rows, columns);
  }

  private static Module block(int seed) {
    return new Sequential(
        new Linear(values(seed, 2 * WIDTH, WIDTH), null),
        new Function(Activations::gelu),
        new Function(x -> Random.dropout(x, 0.3, true, null)),
        new Linear(values(seed + 1, WIDTH, 2 * WIDTH), null));
  }

  /** The output, and the gradients of the input and all parameters. */
  private static List<float[]> run(List<Module> blocks, UnaryOperator<Tensor> forward) {
    Generator unused = Generator.current().manualSeed(5);
    Tensor x = values(9, 4, WIDTH).requiresGrad(true);
    List<float[]> out = new ArrayList<>();
    try (TensorScope scope = TensorScope.open()) {
      Tensor y = forward.apply(x);
      Tensor after = Random.rand(Generator.current(), DType.FLOAT32, 3);
      Reductions.sum(Pointwise.mul(y, y)).backward();
      out.add(y.toFloatArray());
      out.add(after.toFloatArray());
      out.add(Random.rand(Generator.current(), DType.FLOAT32, 3).toFloatArray());
      out.add(x.grad().toFloatArray());
    }
    for (Module b : blocks) {
      b.parameters().forEach(p -> out.add(p.grad().toFloatArray()));
      b.zeroGrad();
    }
    return out;
  }

  private static Tensor chain(List<Module> blocks, Tensor x) {
    Tensor y = x;
    for (Module b : blocks) {
      y = b.call(y);
    }
    return y;
  }

  private static void assertSame(List<float[]> got, List<float[]> want) {
    assertThat(got).hasSameSizeAs(want);
    for (int i = 0; i < want.size(); i++) {
      assertThat(got.get(i)).containsExactly(want.get(i));
    }
  }

  /** Outputs, gradients and the random numbers drawn later are those without recomputation. */
  @Test
  void valuesAndGradientsAreTheSameBits() {
    List<Module> blocks = List.of(block(1), block(3), block(5));
    List<float[]> want = run(blocks, x -> chain(blocks, x));
    assertSame(
        run(
            blocks,
            x -> {
              Tensor y = x;
              for (Module b : blocks) {
                y = Recompute.checkpoint(t -> b.call(t), y);
              }
              return y;
            }),
        want);
    List<Module.Handle> handles = blocks.stream().map(Recompute::of).toList();
    assertSame(run(blocks, x -> chain(blocks, x)), want);
    handles.forEach(Module.Handle::close);
    assertSame(run(blocks, x -> chain(blocks, x)), want);
  }

  @Test
  void piecesNest() {
    List<Module> blocks = List.of(block(1), block(3), block(5));
    List<float[]> want = run(blocks, x -> chain(blocks, x));
    blocks.forEach(Recompute::of);
    assertSame(run(blocks, x -> Recompute.checkpoint(t -> chain(blocks, t), x)), want);
  }

  /** An own generator that is passed in gives the same numbers, too. */
  @Test
  void everyGeneratorIsPutBack() {
    Generator own = new Generator(3);
    Tensor x = values(1, 4, WIDTH).requiresGrad(true);
    Tensor y = Recompute.checkpoint(t -> Pointwise.mul(Random.dropout(t, 0.5, true, own), t), x);
    float[] mask = y.toFloatArray();
    long at = own.offset();
    Reductions.sum(y).backward();
    assertThat(own.offset()).isEqualTo(at);
    float[] g = x.grad().toFloatArray();
    float[] v = x.toFloatArray();
    for (int i = 0; i < g.length; i++) {
      // y = m x x, so the gradient is 2 m x = 2 y / x: only with the same mask m.
      assertThat(g[i]).isEqualTo(mask[i] == 0 ? 0 : 2 * mask[i] / v[i], within(1e-5f));
    }
  }

  private static org.assertj.core.data.Offset<Float> within(float f) {
    return org.assertj.core.api.Assertions.within(f);
  }

  /** Backward runs outside of the autocast scope, or inside one that forward did not have. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void thePrecisionIsThatOfForward(boolean low) {
    Module block = block(1);
    List<DType> seen = new ArrayList<>();
    List<List<float[]>> runs = new ArrayList<>();
    for (boolean again : new boolean[] {false, true}) {
      seen.clear();
      block.zeroGrad();
      Generator unused = Generator.current().manualSeed(5);
      Tensor x = values(9, 4, WIDTH);
      UnaryOperator<Tensor> body =
          t -> {
            Tensor h = block.call(t);
            seen.add(h.dtype());
            return h;
          };
      Tensor y;
      try (Autocast forward = low ? Autocast.to(DType.BFLOAT16) : Autocast.off()) {
        y = again ? Recompute.checkpoint(body, x) : body.apply(x);
      }
      Tensor loss = Reductions.sum(y.to(DType.FLOAT32));
      if (low) {
        loss.backward();
      } else {
        try (Autocast other = Autocast.to(DType.BFLOAT16)) {
          loss.backward();
        }
      }
      runs.add(block.parameters().stream().map(p -> p.grad().toFloatArray()).toList());
    }
    assertThat(seen).hasSize(2).containsOnly(low ? DType.BFLOAT16 : DType.FLOAT32);
    assertSame(runs.get(1), runs.get(0));
  }

  /** What is held between forward and backward is the blocks' inputs, not their insides. */
  @Test
  void onlyInputsAreHeldUntilBackward() {
    long plain = heldByForward(false);
    long again = heldByForward(true);
    long rows = 64L * 4;
    // A block holds its input and two tensors of twice the width.
    assertThat(plain).isGreaterThanOrEqualTo(4 * 5 * rows * WIDTH);
    // Inputs of four blocks, the last output, and its product.
    assertThat(again).isLessThanOrEqualTo((4 + 3) * rows * WIDTH);
  }

  private static long heldByForward(boolean recompute) {
    List<Module> blocks = List.of(block(1), block(3), block(5), block(7));
    if (recompute) {
      blocks.forEach(Recompute::of);
    }
    Tensor x = values(2, 64, WIDTH).requiresGrad(true);
    // Garbage of other tests does not count.
    try (MemoryAccount account = MemoryAccount.open()) {
      Tensor loss;
      try (TensorScope scope = TensorScope.open()) {
        Tensor y = chain(blocks, x);
        loss = scope.keep(Reductions.sum(Pointwise.mul(y, y)));
      }
      long held = account.liveBytes();
      loss.backward();
      blocks.forEach(Module::zeroGrad);
      x.setGrad(null);
      loss.close();
      assertThat(account.liveBytes()).isZero();
      return held;
    }
  }

  @Test
  void aPieceIsRunOnceMoreOnlyAndOnlyWhereItIsRecorded() {
    int[] runs = {0};
    Module block = block(1);
    UnaryOperator<Tensor> body =
        t -> {
          runs[0]++;
          return block.call(t);
        };
    Tensor x = values(9, 4, WIDTH);
    Tensor quiet = Autograd.noGrad(() -> Recompute.checkpoint(body, x));
    assertThat(quiet.requiresGrad()).isFalse();
    assertThat(runs[0]).isEqualTo(1);
    Tensor loss = Reductions.sum(Recompute.checkpoint(body, x));
    Autograd.backward(loss, null, true);
    assertThat(runs[0]).isEqualTo(3);
    float[] first = block.parameters().get(0).grad().toFloatArray();
    loss.backward();
    assertThat(runs[0]).isEqualTo(3);
    float[] twice = block.parameters().get(0).grad().toFloatArray();
    for (int i = 0; i < first.length; i++) {
      assertThat(twice[i]).isEqualTo(2 * first[i]);
    }
  }

  @Test
  void whatWouldGiveOtherGradientsIsRefused() {
    Module block = block(1);
    Tensor x = values(9, 4, WIDTH);
    Tensor y = Reductions.sum(Recompute.checkpoint(t -> block.call(t), x));
    Tensor unused = InPlace.mul(x, 2);
    assertThatThrownBy(y::backward)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("argument 0")
        .hasMessageContaining("changed in place");
    Tensor z = Reductions.sum(Recompute.checkpoint(t -> block.call(t), x));
    Autograd.noGrad(() -> InPlace.mul(block.parameters().get(0), 2));
    assertThatThrownBy(z::backward)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("parameter")
        .hasMessageContaining("changed in place");
    int[] runs = {0};
    Tensor w =
        Reductions.sum(
            Recompute.checkpoint(
                t -> runs[0]++ == 0 ? block.call(t) : block.call(block.call(t)), x));
    assertThatThrownBy(w::backward)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("saves more tensors")
        .hasMessageContaining("do the same each time");
    int[] calls = {0};
    Tensor v =
        Reductions.sum(
            Recompute.checkpoint(
                t -> calls[0]++ == 0 ? block.call(block.call(t)) : block.call(t), x));
    assertThatThrownBy(v::backward)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageMatching(".*second run saves \\d+ tensors; expected the \\d+ of the first.*");
  }
}
