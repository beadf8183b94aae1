package dev.weft.dtensor.checkpoint;

import dev.weft.dtensor.DTensor;
import dev.weft.nn.Module;
import dev.weft.optim.Optimizer;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** A module and its optimiser as named tensors and numbers. A tied parameter has its first name. */
final class TrainingState {
  private static final String MODEL = "model.";
  private static final String OPTIMIZER = "optimizer.";
  private static final String RANDOM = "random";

  private final Module module;
  private final @Nullable Optimizer optimizer;

  private TrainingState(Module module, @Nullable Optimizer optimizer) {
    this.module = module;
    this.optimizer = optimizer;
  }

  static TrainingState of(Module module, @Nullable Optimizer optimizer) {
    return new TrainingState(module, optimizer);
  }

  static boolean isOfOptimizer(String name) {
    return name.startsWith(OPTIMIZER);
  }

  Map<String, Tensor> tensors() {
    Map<String, Tensor> out = new LinkedHashMap<>();
    Set<Tensor> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    module
        .namedParameters()
        .forEach(
            (name, t) -> {
              if (seen.add(t)) {
                out.put(MODEL + name, t);
              }
            });
    module.namedBuffers().forEach((name, t) -> out.put(MODEL + name, t));
    if (optimizer != null) {
      optimizer.state(module.namedParameters()).forEach((name, t) -> out.put(OPTIMIZER + name, t));
    }
    Generator g = DTensor.generator();
    out.put(RANDOM, Tensor.of(new long[] {g.seed(), g.offset()}, 2));
    return out;
  }

  Map<String, Double> scalars(Map<String, Double> users) {
    Map<String, Double> out = new TreeMap<>(users);
    for (String name : users.keySet()) {
      if (name.startsWith(OPTIMIZER)) {
        throw new IllegalArgumentException(
            "scalars: '"
                + name
                + "' is taken; expected a name that does not begin with optimizer.");
      }
    }
    if (optimizer != null) {
      optimizer.scalars().forEach((name, value) -> out.put(OPTIMIZER + name, value));
    }
    return out;
  }

  /** Sets what is not tensors; returns the user's numbers. */
  Map<String, Double> restore(Map<String, Tensor> loaded, Map<String, Double> scalars) {
    Map<String, Double> users = new TreeMap<>();
    Map<String, Double> own = new TreeMap<>();
    scalars.forEach(
        (name, value) -> {
          if (name.startsWith(OPTIMIZER)) {
            own.put(name.substring(OPTIMIZER.length()), value);
          } else {
            users.put(name, value);
          }
        });
    if (optimizer != null) {
      optimizer.loadScalars(own);
    }
    long[] random = Objects.requireNonNull(loaded.get(RANDOM)).toLongArray();
    Generator unused = DTensor.generator().manualSeed(random[0]).offset(random[1]);
    return users;
  }
}
