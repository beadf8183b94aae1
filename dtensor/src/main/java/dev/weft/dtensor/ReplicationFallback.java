package dev.weft.dtensor;

import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs an operator that has no rule on whole tensors, where the user allows that, and says so once
 * for each operator. Thread-safe.
 */
final class ReplicationFallback implements Sharding.Rule {
  static final ReplicationFallback INSTANCE = new ReplicationFallback();
  private static final Logger LOG = LoggerFactory.getLogger(ReplicationFallback.class);
  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();
  private static volatile boolean allowed;

  /** Where notices go; tests listen here. */
  static volatile Consumer<String> notices = LOG::warn;

  private ReplicationFallback() {}

  /** The operators that it has been used for. */
  static Set<String> used() {
    return Set.copyOf(SAID);
  }

  static boolean isAllowed() {
    return allowed;
  }

  static boolean allow(boolean allow) {
    boolean before = allowed;
    allowed = allow;
    SAID.clear();
    Propagation.forget();
    return before;
  }

  @Override
  public List<Sharding.Row> rows(Sharding.Call call) {
    return List.of();
  }

  @Override
  public Sharding.Layouts layouts(Sharding.Call call) {
    List<DTensorSpec> inputs = call.inputs();
    List<Placement> whole = Collections.nCopies(inputs.get(0).mesh().ndim(), Replicate.INSTANCE);
    if (call.op().form() == Op.Form.IN_PLACE && !inputs.get(0).placements().equals(whole)) {
      throw new UnsupportedOperationException(
          "operator '"
              + call.op()
              + "' has no sharding rule and writes into a target placed as "
              + inputs.get(0).placements()
              + ", which a fallback to replication would not reach; add a rule with"
              + " Sharding.register(\""
              + call.op()
              + "\", rule)");
    }
    List<List<Placement>> in = new ArrayList<>();
    long bytes = 0;
    for (DTensorSpec spec : inputs) {
      in.add(whole);
      bytes += Redistribution.plan(spec, whole).bytes();
    }
    if (SAID.add(call.op().name())) {
      notices.accept(
          "operator '"
              + call.op()
              + "' has no sharding rule and runs on whole tensors; this call moves "
              + bytes
              + " B to make "
              + inputs
              + " whole (said once for each operator)");
    }
    return new Sharding.Layouts(in, Collections.nCopies(call.outputs().length, whole));
  }
}
