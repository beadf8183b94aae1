package dev.weft.dtensor.tp;

import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** Applies styles to the modules of a model. */
public final class Parallelize {
  private Parallelize() {}

  /**
   * Makes a model parallel, in place. All ranks of the mesh call it with the same plan.
   *
   * @param model plain parameters, equal on all ranks or taken from the mesh's first rank
   * @param mesh one dimension; take it from a larger mesh with {@code mesh.get("tp")}
   * @param plan styles by path; {@code *} stands for any text within one name, {@code ?} for a
   *     character, {@code [abc]} for one of several; each entry must match some module
   * @return the model
   */
  public static <M extends Module> M parallelizeModule(
      M model, DeviceMesh mesh, Map<String, ? extends ParallelStyle> plan) {
    if (mesh.ndim() != 1) {
      throw new IllegalArgumentException(
          "parallelizeModule: mesh " + mesh + " has " + mesh.ndim() + " dimensions; expected 1");
    }
    Map<String, Module> modules = model.namedModules();
    // In the order of the modules: a plan's own order may differ from rank to rank.
    Map<String, Pattern> patterns = new TreeMap<>();
    plan.keySet().forEach(p -> patterns.put(p, glob(p)));
    Set<String> unused = new TreeSet<>(plan.keySet());
    List<Runnable> changes = new ArrayList<>();
    modules.forEach(
        (path, module) ->
            patterns.forEach(
                (pattern, regex) -> {
                  ParallelStyle style = plan.get(pattern);
                  if (style != null && regex.matcher(path).matches()) {
                    unused.remove(pattern);
                    changes.add(() -> style.apply(model, path, module, mesh));
                  }
                }));
    // Everything is checked before any module is changed.
    if (!unused.isEmpty()) {
      throw new IllegalArgumentException(
          "parallelizeModule: " + unused + " match no module; the modules are " + modules.keySet());
    }
    changes.forEach(Runnable::run);
    return model;
  }

  private static Pattern glob(String pattern) {
    StringBuilder regex = new StringBuilder();
    for (int i = 0; i < pattern.length(); i++) {
      char c = pattern.charAt(i);
      switch (c) {
        case '*' -> regex.append("[^.]*");
        case '?' -> regex.append("[^.]");
        case '[', ']' -> regex.append(c);
        default -> regex.append(Pattern.quote(String.valueOf(c)));
      }
    }
    return Pattern.compile(regex.toString());
  }
}
