package dev.weft.dtensor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Joins;
import dev.weft.tensor.op.Pointwise;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * Rules that could be there and are not: placements with which an operator, run on the parts as it
 * is, gives parts of the right result, and for which the rule communicates all the same. Found by
 * trying all placements of the inputs and all placements of the results on two ranks.
 */
class MissingRulesTest {
  private static final int N = 2;

  /** Found and left alone, with the reason. */
  private static final Map<String, String> KNOWN =
      Map.of(
          "cross_entropy mean[S(0), S(0)]", "right only where parts have as many targets",
          "nll_loss mean[S(0), S(0)]", "right only where parts have as many targets",
          "rope[S(2), S(1), S(1)]", "right only where every rank has whole pairs");

  private record Case(OperatorSamples.Sample sample, List<Placement> inputs) {
    @Override
    public String toString() {
      return sample.name() + inputs;
    }
  }

  @Test
  void whatRunsOnPartsAsItIsDoesNotCommunicate() {
    List<Case> possible = new ArrayList<>();
    for (OperatorSamples.Sample s : OperatorSamples.all()) {
      if (!s.inPlace()) {
        for (List<Placement> in : combinations(s)) {
          if (in.stream().anyMatch(p -> !p.isReplicate()) && runsOnParts(s, in)) {
            possible.add(new Case(s, in));
          }
        }
      }
    }
    assertThat(possible).hasSizeGreaterThan(200);
    TreeSet<String> missing = new TreeSet<>();
    LocalWorld.run(
        N,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", N);
          for (Case c : possible) {
            if (communicates(c, mesh) && rank == 0) {
              missing.add(c.toString());
            }
          }
        });
    assertThat(missing).as("known ones that are there now").containsAll(KNOWN.keySet());
    missing.removeAll(KNOWN.keySet());
    assertThat(missing).as("rules that are missing").isEmpty();
  }

  private static List<List<Placement>> combinations(OperatorSamples.Sample s) {
    List<List<Placement>> all = new ArrayList<>(List.of(List.of()));
    for (OperatorSamples.Input input : s.inputs()) {
      List<List<Placement>> next = new ArrayList<>();
      for (List<Placement> list : all) {
        for (Placement p : alphabet(input)) {
          List<Placement> longer = new ArrayList<>(list);
          longer.add(p);
          next.add(List.copyOf(longer));
        }
      }
      all = next;
    }
    return all;
  }

  /** Cuts only: what an operator does with an outstanding sum is chosen, not only possible. */
  private static List<Placement> alphabet(OperatorSamples.Input input) {
    List<Placement> out = new ArrayList<>(List.of(Replicate.INSTANCE));
    for (int d = 0; d < input.shape().length; d++) {
      out.add(new Shard(d));
    }
    return out;
  }

  private static List<Tensor> whole(OperatorSamples.Sample s) {
    List<Tensor> out = new ArrayList<>();
    for (int i = 0; i < s.inputs().size(); i++) {
      out.add(RuleValidatorTest.values(s.inputs().get(i), i));
    }
    return out;
  }

  private static Tensor part(Tensor t, Placement p, int rank) {
    if (p.isShard()) {
      int d = p.shardDim();
      long size = t.shape()[d];
      return Regions.narrow(
          (StridedTensor) t, d, Layout.start(size, N, rank), Layout.length(size, N, rank));
    }
    return t;
  }

  private static List<Tensor> results(OperatorSamples.Sample s, List<Tensor> inputs) {
    Object out = Autograd.noGrad(() -> s.call().apply(inputs));
    List<Tensor> tensors = new ArrayList<>();
    for (Object o : out instanceof List<?> list ? list : Arrays.asList(out)) {
      if (!(o instanceof Tensor t)) {
        return List.of();
      }
      tensors.add(t);
    }
    return tensors;
  }

  private static boolean runsOnParts(OperatorSamples.Sample s, List<Placement> in) {
    List<Tensor> whole = whole(s);
    List<Tensor> want = results(s, whole);
    List<List<Tensor>> got = new ArrayList<>();
    try {
      for (int r = 0; r < N; r++) {
        List<Tensor> parts = new ArrayList<>();
        for (int i = 0; i < whole.size(); i++) {
          parts.add(part(whole.get(i), in.get(i), r));
        }
        got.add(results(s, parts));
      }
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      return false; // the parts do not fit together
    }
    for (int o = 0; o < want.size(); o++) {
      if (got.get(0).size() != want.size()
          || got.get(1).size() != want.size()
          || !isSomePlacement(want.get(o), got.get(0).get(o), got.get(1).get(o))) {
        return false;
      }
    }
    return !want.isEmpty();
  }

  private static boolean isSomePlacement(Tensor want, Tensor a, Tensor b) {
    if (same(want, a) && same(want, b)) {
      return true;
    }
    for (int d = 0; d < want.ndim(); d++) {
      if (a.ndim() == want.ndim()
          && fits(a, b, d)
          && a.size(d) == Layout.length(want.size(d), N, 0)
          && same(want, Joins.cat(List.of(a, b), d))) {
        return true;
      }
    }
    if (!want.dtype().isFloatingPoint()
        || !Arrays.equals(a.shape(), want.shape())
        || !Arrays.equals(b.shape(), want.shape())) {
      return false;
    }
    Tensor sum = a.add(b);
    return same(want, sum)
        || same(want, sum.mul(0.5))
        || same(want, Pointwise.maximum(a, b))
        || same(want, Pointwise.minimum(a, b));
  }

  private static boolean fits(Tensor a, Tensor b, int dim) {
    if (a.ndim() != b.ndim() || a.dtype() != b.dtype()) {
      return false;
    }
    for (int d = 0; d < a.ndim(); d++) {
      if (d != dim && a.size(d) != b.size(d)) {
        return false;
      }
    }
    return true;
  }

  private static boolean same(Tensor want, Tensor got) {
    if (!Arrays.equals(want.shape(), got.shape()) || want.dtype() != got.dtype()) {
      return false;
    }
    double[] w = want.toDoubleArray();
    double[] g = got.toDoubleArray();
    for (int i = 0; i < w.length; i++) {
      boolean equal = Double.isNaN(w[i]) ? Double.isNaN(g[i]) : w[i] == g[i];
      if (!equal && !(Math.abs(w[i] - g[i]) <= 1e-4 + 1e-4 * Math.abs(w[i]))) {
        return false;
      }
    }
    return true;
  }

  private static boolean communicates(Case c, DeviceMesh mesh) {
    List<Tensor> placed = new ArrayList<>();
    List<Tensor> whole = whole(c.sample);
    int rank = mesh.getLocalRank();
    for (int i = 0; i < whole.size(); i++) {
      Placement p = c.inputs.get(i);
      DTensor.FromLocal shape =
          DTensor.FromLocal.DEFAULT.withShape(
              whole.get(i).shape(), ((StridedTensor) whole.get(i)).strides());
      StridedTensor part = Regions.copyOf((StridedTensor) part(whole.get(i), p, rank));
      placed.add(DTensor.fromLocal(part, mesh, List.of(p), shape));
    }
    AtomicInteger count = new AtomicInteger();
    try (Dispatcher.Installed installed =
        Dispatcher.install(
            call -> {
              count.addAndGet(call.op().name().startsWith("c10d.") ? 1 : 0);
              return call.proceed();
            })) {
      Object unused = Autograd.noGrad(() -> c.sample.call().apply(placed));
    } catch (IllegalArgumentException e) {
      return true; // refused where it could run
    }
    return count.get() > 0;
  }
}
