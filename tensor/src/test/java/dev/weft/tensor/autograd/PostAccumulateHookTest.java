package dev.weft.tensor.autograd;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PostAccumulateHookTest {
  private static Tensor leaf(float value) {
    return Tensor.of(new float[] {value}, 1).requiresGrad(true);
  }

  private static List<Float> noteGradients(Tensor leaf) {
    List<Float> seen = new ArrayList<>();
    Autograd.postAccumulateHook(leaf, p -> seen.add(p.grad().toFloatArray()[0]));
    return seen;
  }

  @Test
  void aLeafUsedInSeveralPlacesIsReportedOnceAndComplete() {
    Tensor w = leaf(3);
    List<Float> seen = noteGradients(w);
    Tensor y = Pointwise.mul(Pointwise.mul(w, w), w);
    Reductions.sum(y).backward();
    assertThat(seen).containsExactly(27f);
  }

  @Test
  void eachBackwardReportsWhatIsAccumulatedSoFar() {
    Tensor w = leaf(3);
    List<Float> seen = noteGradients(w);
    Reductions.sum(Pointwise.mul(w, 2)).backward();
    Reductions.sum(Pointwise.mul(w, 2)).backward();
    assertThat(seen).containsExactly(2f, 4f);
  }

  @Test
  void itComesWhileBackwardGoesOn() {
    Tensor early = leaf(2);
    Tensor late = leaf(5);
    List<String> events = new ArrayList<>();
    Autograd.postAccumulateHook(late, p -> events.add("late"));
    Autograd.postAccumulateHook(early, p -> events.add("early"));
    Tensor x = Pointwise.mul(early, 3);
    Autograd.hook(
        x,
        g -> {
          events.add("between");
          return g;
        });
    Reductions.sum(Pointwise.mul(x, late)).backward();
    assertThat(events).containsExactly("late", "between", "early");
  }

  @Test
  void aLeafThatIsTheRootIsReported() {
    Tensor w = leaf(3);
    List<Float> seen = noteGradients(w);
    w.backward();
    assertThat(seen).containsExactly(1f);
  }

  @Test
  void aLeafThatNothingReachesIsNot() {
    Tensor w = leaf(3);
    List<Float> seen = noteGradients(w);
    Tensor detached = Pointwise.mul(w, 2).detach();
    Reductions.sum(Pointwise.mul(detached, leaf(1))).backward();
    assertThat(seen).isEmpty();
  }
}
