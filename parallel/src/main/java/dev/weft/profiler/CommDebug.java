package dev.weft.profiler;

import dev.weft.c10d.CollectiveCall;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Interceptor;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Counts the collectives and messages that the calling thread issues while it is open, by module
 * and by forward or backward, as PyTorch's {@code CommDebugMode}. Used and closed by one thread.
 *
 * <pre>{@code
 * try (CommDebug comm = CommDebug.of(model)) {
 *   loss(model.call(x)).backward();
 *   System.out.println(comm);
 * }
 * }</pre>
 *
 * <p>What a module's other hooks do around its computation counts as the module's. In backward a
 * module is entered with the gradient of its output and left with that of its input: what follows
 * from the gradients of parameters (a bucket of data parallelism) counts where the thread is then.
 */
public final class CommDebug implements AutoCloseable {
  /** A part of a training step. */
  public enum Phase {
    /** Outside backward. */
    FORWARD,
    /** Inside it. */
    BACKWARD
  }

  /**
   * Collectives of one kind.
   *
   * @param count how many
   * @param bytes of their tensors in full
   */
  public record Traffic(long count, long bytes) {
    private Traffic plus(Traffic other) {
      return new Traffic(count + other.count, bytes + other.bytes);
    }
  }

  private record Call(String path, Phase phase, String operation, long bytes) {}

  private final Module model;
  private final ModuleTracker tracker;
  private final Dispatcher.Installed installed;
  private final List<Call> calls = new ArrayList<>();

  private CommDebug(Module model) {
    this.model = model;
    this.tracker = new ModuleTracker(model);
    this.installed = Dispatcher.install(this::intercept);
  }

  /** Begins to count; make it after the model has been parallelised. */
  public static CommDebug of(Module model) {
    return new CommDebug(model);
  }

  private Tensor[] intercept(Interceptor.Call call) {
    CollectiveCall collective = CollectiveCall.of(call.attrs());
    if (collective != null && collective.group().isMember()) {
      Tensor[] tensors = call.inputs();
      long[][] shapes = new long[tensors.length][];
      DType[] dtypes = new DType[tensors.length];
      for (int i = 0; i < tensors.length; i++) {
        shapes[i] = tensors[i].shape();
        dtypes[i] = tensors[i].dtype();
      }
      calls.add(
          new Call(
              tracker.path(),
              Autograd.isInBackward() ? Phase.BACKWARD : Phase.FORWARD,
              Payload.operation(call.op().name()),
              Payload.bytes(shapes, dtypes, call.attrs().intAt(3))));
    }
    return call.proceed();
  }

  /** How many there were of each operation, by names such as {@code all_reduce}. */
  public Map<String, Long> counts() {
    Map<String, Long> out = new TreeMap<>();
    calls.forEach(c -> out.merge(c.operation, 1L, Long::sum));
    return out;
  }

  /** How many there were. */
  public long total() {
    return calls.size();
  }

  /**
   * What was issued in a module and all below, by operation.
   *
   * @param path the empty one is the root: everything
   * @throws IllegalArgumentException if there is no such module
   */
  public Map<String, Traffic> traffic(String path, Phase phase) {
    Module unused = model.module(path);
    return traffic(path, phase, true);
  }

  private Map<String, Traffic> traffic(String path, Phase phase, boolean below) {
    Map<String, Traffic> out = new TreeMap<>();
    for (Call c : calls) {
      boolean inside = below && (path.isEmpty() || c.path.startsWith(path + "."));
      if (c.phase == phase && (inside || c.path.equals(path))) {
        out.merge(c.operation, new Traffic(1, c.bytes), Traffic::plus);
      }
    }
    return out;
  }

  /** Forgets what was counted. */
  public void reset() {
    calls.clear();
  }

  /**
   * The modules as a tree, each with what was issued in it and below; modules without any are left
   * out.
   */
  @Override
  public String toString() {
    StringBuilder out = new StringBuilder();
    Set<String> used = new TreeSet<>();
    calls.forEach(c -> used.add(c.path));
    model
        .namedModules()
        .forEach(
            (path, module) -> {
              boolean any =
                  path.isEmpty()
                      || used.stream().anyMatch(p -> p.equals(path) || p.startsWith(path + "."));
              if (any) {
                describe(out, path, module);
              }
            });
    return out.toString();
  }

  private void describe(StringBuilder out, String path, Module module) {
    int depth = path.isEmpty() ? 0 : path.split("\\.", -1).length;
    String name = path.isEmpty() ? "" : path.substring(path.lastIndexOf('.') + 1) + ": ";
    out.append("  ".repeat(depth)).append(name).append(module.getClass().getSimpleName());
    out.append(System.lineSeparator());
    for (Phase phase : Phase.values()) {
      traffic(path, phase, true)
          .forEach(
              (operation, traffic) ->
                  out.append(
                      String.format(
                          Locale.ROOT,
                          "%s- %s: %d %s, %,d B%n",
                          "  ".repeat(depth + 1),
                          phase.name().toLowerCase(Locale.ROOT),
                          traffic.count,
                          operation,
                          traffic.bytes)));
    }
  }

  @Override
  public void close() {
    installed.close();
    tracker.close();
  }
}
