package dev.weft.profiler;

import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/**
 * Knows in which module of a tree a thread is, in forward by hooks around the calls, in backward by
 * hooks on the tensors that go in and out: the gradient of an output enters its module, that of an
 * input leaves it. One thread.
 */
final class ModuleTracker implements AutoCloseable {
  private final List<Module.Handle> handles = new ArrayList<>();
  private final Deque<String> forward = new ArrayDeque<>();
  private String backward = "";
  private boolean closed;

  ModuleTracker(Module root) {
    for (Map.Entry<String, Module> e : root.namedModules().entrySet()) {
      String path = e.getKey();
      // First and last, so that what other hooks do (a redistribution) is the module's.
      handles.add(e.getValue().forwardPreHook((m, inputs) -> enter(path, inputs), true));
      handles.add(e.getValue().forwardHook((m, inputs, output) -> leave(path, output)));
    }
  }

  /** Where the thread is; the empty path is the root, or outside. */
  String path() {
    if (Autograd.isInBackward()) {
      // Recomputation runs forward inside.
      return forward.isEmpty() ? backward : forward.getLast();
    }
    return forward.isEmpty() ? "" : forward.getLast();
  }

  private Tensor[] enter(String path, Tensor[] inputs) {
    forward.addLast(path);
    for (Tensor t : inputs) {
      if (t.requiresGrad() && Autograd.isEnabled()) {
        Autograd.hook(
            t,
            g -> {
              if (isWithin(backward, path)) {
                backward = parent(path);
              }
              return g;
            });
      }
    }
    return inputs;
  }

  private Tensor leave(String path, Tensor output) {
    String unused = forward.removeLast();
    if (output.requiresGrad() && Autograd.isEnabled()) {
      Autograd.hook(
          output,
          g -> {
            if (!closed) {
              backward = path;
              Autograd.afterBackward(() -> backward = "");
            }
            return g;
          });
    }
    return output;
  }

  private static boolean isWithin(String path, String ancestor) {
    return ancestor.isEmpty() || path.equals(ancestor) || path.startsWith(ancestor + ".");
  }

  private static String parent(String path) {
    int dot = path.lastIndexOf('.');
    return dot < 0 ? "" : path.substring(0, dot);
  }

  @Override
  public void close() {
    closed = true;
    handles.forEach(Module.Handle::close);
    handles.clear();
  }
}
