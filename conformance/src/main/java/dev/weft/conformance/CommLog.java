package dev.weft.conformance;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Interceptor;
import java.util.ArrayList;
import java.util.List;

/** Records the collectives that one rank issues, outermost ones only. One thread. */
final class CommLog implements Interceptor {
  private final List<String> names = new ArrayList<>();

  @Override
  public Tensor[] intercept(Call call) {
    String name = call.op().name();
    if (name.startsWith("c10d.") && !name.equals("c10d.barrier")) {
      names.add(name.substring(5));
    }
    return call.proceed();
  }

  /** How many there were. */
  int count() {
    return names.size();
  }

  @Override
  public String toString() {
    return names.toString();
  }
}
