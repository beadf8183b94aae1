package dev.weft.dtensor.tp;

import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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
    // Every entry is checked before any module is changed.
    List<Runnable> changes = new ArrayList<>();
    plan.forEach(
        (pattern, style) -> {
          Pattern regex = glob(pattern);
          int before = changes.size();
          modules.forEach(
              (path, module) -> {
                if (regex.matcher(path).matches()) {
                  changes.add(() -> style.apply(model, path, module, mesh));
                }
              });
          if (changes.size() == before) {
            throw new IllegalArgumentException(
                "parallelizeModule: '"
                    + pattern
                    + "' matches no module; the modules are "
                    + modules.keySet());
          }
        });
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
