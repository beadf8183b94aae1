package dev.weft.dtensor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Reductions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * Every operator on every combination of placements of its inputs, forward and backward, against
 * the same call on whole tensors. Sizes are uneven: some ranks hold less than others, or nothing.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RuleValidatorTest {
  /**
   * Operators whose results are not a function of whole values, and those over lists of local
   * tensors.
   */
  private static final Set<String> WITHOUT_RULE =
      Set.of("arange_", "foreach_squares", "foreach_clip_", "foreach_adamw_");

  /**
   * Combinations of each operator on meshes of two dimensions, where there are more; with {@code
   * -Dweft.validator.combinations=1000000} all. On a line of ranks it is always all.
   */
  private static final int LIMIT = Integer.getInteger("weft.validator.combinations", 40);

  private final Set<String> reached = ConcurrentHashMap.newKeySet();

  @Test
  void everyOperatorOfTheCatalogueHasARule() {
    Set<String> missing = new TreeSet<>();
    for (Map.Entry<String, Op> e : Catalogue.load().entrySet()) {
      // Other tests of this module may have put operators of their own into the catalogue.
      boolean ordinary =
          e.getValue().form() != Op.Form.COMPOSITE && !e.getKey().startsWith("test.");
      if (ordinary && !DTensorInternals.hasRule(e.getKey())) {
        missing.add(e.getKey());
      }
    }
    missing.removeAll(WITHOUT_RULE);
    assertThat(missing).as("operators without a sharding rule").isEmpty();
  }

  @Test
  @Order(1)
  void operatorsOnALineOfThree() {
    validate(new int[] {3});
  }

  @Test
  @Order(2)
  void operatorsOnASquare() {
    validate(new int[] {2, 2});
  }

  @Test
  @Order(3)
  void everyRuleHasBeenReached() {
    Set<String> unseen = new TreeSet<>();
    for (String op : Catalogue.load().keySet()) {
      if (DTensorInternals.hasRule(op) && !reached.contains(op)) {
        unseen.add(op);
      }
    }
    assertThat(unseen).as("rules that no sample reaches").isEmpty();
  }

  private void validate(int[] shape) {
    int world = 1;
    for (int n : shape) {
      world *= n;
    }
    List<String> wrong = Collections.synchronizedList(new ArrayList<>());
    LocalWorld.run(
        world,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", shape);
          for (OperatorSamples.Sample sample : OperatorSamples.all()) {
            check(sample, mesh, rank, wrong);
          }
        });
    assertThat(wrong).as("operators that differ from the dense result").isEmpty();
  }

  private void check(OperatorSamples.Sample sample, DeviceMesh mesh, int rank, List<String> wrong) {
    List<Tensor> whole = new ArrayList<>();
    for (int i = 0; i < sample.inputs().size(); i++) {
      whole.add(values(sample.inputs().get(i), i));
    }
    Results dense = run(sample, copies(whole));
    for (List<List<Placement>> combination : combinations(sample, mesh)) {
      List<Tensor> placed = new ArrayList<>();
      for (int i = 0; i < whole.size(); i++) {
        placed.add(place(whole.get(i), mesh, combination.get(i), i));
      }
      String what = sample.name() + " on " + combination;
      Results got;
      try (Dispatcher.Installed installed =
          Dispatcher.install(
              call -> {
                reached.add(call.op().name());
                return call.proceed();
              })) {
        got = run(sample, placed);
      } catch (IllegalArgumentException e) {
        // Refusals come before any communication, on every rank alike.
        if (!sample.refuses()) {
          wrong.add("rank " + rank + ": " + what + ": " + e.getMessage());
        }
        continue;
      }
      compare(what, dense, got, wrong);
      if (sample.inPlace() && !((DTensor) placed.get(0)).placements().equals(combination.get(0))) {
        wrong.add(what + ": the target's placements have changed");
      }
    }
  }

  private record Results(List<Object> outputs, List<Tensor> gradients) {}

  private static Results run(OperatorSamples.Sample sample, List<Tensor> inputs) {
    boolean backward = !sample.inPlace();
    List<Tensor> leaves = new ArrayList<>();
    for (Tensor t : inputs) {
      boolean leaf = backward && t.dtype().isFloatingPoint();
      leaves.add(leaf ? t.detach().requiresGrad(true) : t);
    }
    Object out = sample.call().apply(leaves);
    List<Object> outputs = new ArrayList<>();
    if (out instanceof List<?> list) {
      outputs.addAll(list);
    } else {
      outputs.add(out);
    }
    List<Tensor> gradients = new ArrayList<>();
    if (backward && outputs.get(0) instanceof Tensor first && first.requiresGrad()) {
      Tensor wide = Casts.to(first, DType.FLOAT64);
      Reductions.sum(wide.mul(wide)).backward();
      for (Tensor t : leaves) {
        Tensor g = t.grad();
        if (g != null) {
          gradients.add(g);
        }
      }
    }
    return new Results(outputs, gradients);
  }

  private static void compare(String what, Results dense, Results got, List<String> wrong) {
    if (dense.outputs.size() != got.outputs.size()
        || dense.gradients.size() != got.gradients.size()) {
      wrong.add(what + ": another number of results or gradients");
      return;
    }
    for (int i = 0; i < dense.outputs.size(); i++) {
      if (dense.outputs.get(i) instanceof Tensor d) {
        close(what + " output " + i, d, (Tensor) got.outputs.get(i), wrong);
      } else if (!dense.outputs.get(i).equals(got.outputs.get(i))) {
        wrong.add(what + ": " + got.outputs.get(i) + " instead of " + dense.outputs.get(i));
      }
    }
    for (int i = 0; i < dense.gradients.size(); i++) {
      close(what + " gradient " + i, dense.gradients.get(i), got.gradients.get(i), wrong);
    }
  }

  private static void close(String what, Tensor want, Tensor got, List<String> wrong) {
    double[] w = want.toDoubleArray();
    double[] g = got.toDoubleArray();
    if (w.length != g.length) {
      wrong.add(what + ": " + g.length + " elements instead of " + w.length);
      return;
    }
    for (int i = 0; i < w.length; i++) {
      boolean same =
          Double.isNaN(w[i])
              ? Double.isNaN(g[i])
              : w[i] == g[i] || Math.abs(w[i] - g[i]) <= 1e-3 + 1e-3 * Math.abs(w[i]);
      if (!same) {
        wrong.add(what + " [" + i + "]: " + g[i] + " instead of " + w[i]);
        return;
      }
    }
  }

  // ---- inputs ----

  static Tensor values(OperatorSamples.Input input, int seed) {
    int n = (int) Shapes.numel(input.shape());
    Random random = new Random(100 + seed);
    double[] values = new double[n];
    for (int i = 0; i < n; i++) {
      values[i] =
          switch (input.kind()) {
            case FLOAT -> (random.nextInt(400) - 200) / 64.0;
            case POSITIVE -> (random.nextInt(200) + 40) / 64.0;
            case BOOL -> random.nextInt(2);
            case INDEX -> random.nextInt(4);
          };
    }
    Tensor wide = Tensor.of(values, input.shape());
    return Casts.to(
        wide,
        switch (input.kind()) {
          case FLOAT, POSITIVE -> DType.FLOAT32;
          case BOOL -> DType.BOOL;
          case INDEX -> DType.INT64;
        });
  }

  private static List<Tensor> copies(List<Tensor> tensors) {
    List<Tensor> out = new ArrayList<>();
    for (Tensor t : tensors) {
      out.add(Casts.copy(t));
    }
    return out;
  }

  /** Contributions of outstanding sums differ between ranks. */
  private static DTensor place(
      Tensor whole, DeviceMesh mesh, List<Placement> placements, int seed) {
    DTensor d = DTensor.distributeTensor(whole, mesh, placements, null);
    for (int m = 0; m < placements.size(); m++) {
      if (placements.get(m).equals(Partial.SUM)) {
        int n = mesh.size(m);
        double shift = (mesh.coordinate(m) - (n - 1) / 2.0) * (seed + 1);
        Tensor unused = dev.weft.tensor.op.InPlace.add(d.local(), shift);
      }
    }
    return d;
  }

  private static List<Placement> alphabet(OperatorSamples.Input input) {
    List<Placement> out = new ArrayList<>(List.of(Replicate.INSTANCE));
    for (int d = 0; d < input.shape().length; d++) {
      out.add(new Shard(d));
    }
    if (input.kind() == OperatorSamples.Kind.FLOAT
        || input.kind() == OperatorSamples.Kind.POSITIVE) {
      out.add(Partial.SUM);
      out.add(new Partial(Partial.Op.MAX));
    }
    return out;
  }

  /** All of them, or a fixed sample where there are many. */
  private static List<List<List<Placement>>> combinations(
      OperatorSamples.Sample sample, DeviceMesh mesh) {
    List<List<List<Placement>>> all = new ArrayList<>(List.of(List.of()));
    for (OperatorSamples.Input input : sample.inputs()) {
      List<List<Placement>> own = new ArrayList<>(List.of(List.of()));
      for (int m = 0; m < mesh.ndim(); m++) {
        own = extended(own, alphabet(input));
      }
      own.removeIf(p -> p.contains(Partial.SUM) && p.contains(new Partial(Partial.Op.MAX)));
      all = extended(all, own);
    }
    Collections.shuffle(all, new Random(sample.name().hashCode()));
    return mesh.ndim() == 1 ? all : all.subList(0, Math.min(LIMIT, all.size()));
  }

  private static <T> List<List<T>> extended(List<List<T>> lists, List<T> by) {
    List<List<T>> out = new ArrayList<>();
    for (List<T> list : lists) {
      for (T t : by) {
        List<T> longer = new ArrayList<>(list);
        longer.add(t);
        out.add(List.copyOf(longer));
      }
    }
    return out;
  }
}
