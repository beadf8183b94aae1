package dev.weft.parallel.health;

import java.util.List;
import java.util.stream.Collectors;

/** Replicas that are no longer equal; the message names parameters and ranks. */
public final class DesyncException extends IllegalStateException {
  private static final long serialVersionUID = 1L;
  private static final int SHOWN = 5;

  private final transient List<Desync> desyncs;

  DesyncException(long step, List<Desync> desyncs) {
    super(
        "step "
            + step
            + ": "
            + desyncs.stream().limit(SHOWN).map(Desync::toString).collect(Collectors.joining("; "))
            + (desyncs.size() > SHOWN ? "; and " + (desyncs.size() - SHOWN) + " more" : ""));
    this.desyncs = List.copyOf(desyncs);
  }

  /** All of them, in the order of the parameters. */
  public List<Desync> desyncs() {
    return desyncs;
  }
}
