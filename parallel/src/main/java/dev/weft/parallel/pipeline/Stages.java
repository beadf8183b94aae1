package dev.weft.parallel.pipeline;

import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Cuts a model into the stages of a pipeline. */
public final class Stages {
  private Stages() {}

  /**
   * The stages of a model whose forward calls some of its modules one after the other. Each is a
   * module that calls its part of them, and has their parameters under the paths of the model.
   *
   * @param order the paths in the order of the calls; {@code layers.*} stands for all children of
   *     {@code layers}
   * @param starts the paths with which the second and later stages start, in order
   * @throws IllegalArgumentException if a path is unknown or out of order, if parameters are left
   *     out, or if stages share one
   */
  public static List<Module> split(Module model, List<String> order, List<String> starts) {
    List<String> paths = expand(model, order);
    List<Stage> stages = new ArrayList<>();
    stages.add(new Stage());
    int next = 0;
    for (String path : paths) {
      if (next < starts.size() && starts.get(next).equals(path)) {
        next++;
        stages.add(new Stage());
      }
      stages.get(stages.size() - 1).append(path, model.module(path));
    }
    if (next < starts.size()) {
      throw new IllegalArgumentException(
          "starts has '"
              + starts.get(next)
              + "'; expected paths in the order of "
              + paths
              + ", each once");
    }
    check(model, stages);
    return List.copyOf(stages);
  }

  private static List<String> expand(Module model, List<String> order) {
    List<String> paths = new ArrayList<>();
    for (String path : order) {
      if (path.endsWith(".*")) {
        String parent = path.substring(0, path.length() - 2);
        for (String child : model.module(parent).children().keySet()) {
          paths.add(parent + "." + child);
        }
      } else {
        paths.add(path);
      }
    }
    if (new LinkedHashSet<>(paths).size() != paths.size()) {
      throw new IllegalArgumentException("order names a module twice: " + paths);
    }
    return paths;
  }

  private static void check(Module model, List<Stage> stages) {
    Map<Tensor, Integer> stageOf = new HashMap<>();
    for (int s = 0; s < stages.size(); s++) {
      if (stages.get(s).parts.isEmpty()) {
        throw new IllegalArgumentException("stage " + s + " is empty; the first path starts it");
      }
      for (Map.Entry<String, Tensor> e : stages.get(s).namedParameters().entrySet()) {
        Integer other = stageOf.putIfAbsent(e.getValue(), s);
        if (other != null && other != s) {
          throw new IllegalArgumentException(
              "parameter '"
                  + e.getKey()
                  + "' is tied between stages "
                  + other
                  + " and "
                  + s
                  + "; expected all its uses in one stage");
        }
      }
    }
    Set<String> left = new LinkedHashSet<>();
    model
        .namedParameters()
        .forEach(
            (name, p) -> {
              if (!stageOf.containsKey(p)) {
                left.add(name);
              }
            });
    if (!left.isEmpty()) {
      throw new IllegalArgumentException("order leaves out the parameters " + left);
    }
  }

  /** Modules of a model, called one after the other. */
  private static final class Stage extends Module {
    private final List<Module> parts = new ArrayList<>();
    private final Map<String, Holder> holders = new LinkedHashMap<>();

    void append(String path, Module part) {
      parts.add(part);
      String[] names = path.split("\\.", -1);
      if (names.length == 1) {
        Module unused = registerModule(path, part);
        return;
      }
      Holder holder = holders.get(names[0]);
      if (holder == null) {
        holder = registerModule(names[0], new Holder());
        holders.put(names[0], holder);
      }
      holder.put(names, 1, part);
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor[] x = inputs;
      for (Module part : parts) {
        x = new Tensor[] {part.call(x)};
      }
      return x[0];
    }
  }

  /** Has modules under the names that they have in the model. */
  private static final class Holder extends Module {
    void put(String[] names, int at, Module part) {
      if (at == names.length - 1) {
        Module unused = registerModule(names[at], part);
        return;
      }
      Module child = children().get(names[at]);
      Holder holder = child instanceof Holder h ? h : registerModule(names[at], new Holder());
      holder.put(names, at + 1, part);
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      throw new IllegalStateException("the modules of a stage are called one by one");
    }
  }
}
