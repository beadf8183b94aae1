package dev.weft.dtensor;

import dev.weft.tensor.op.Attrs;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Random values. Each is a function of its position in the whole tensor, so that parts get what the
 * whole would have had.
 */
final class RandomRules {
  private RandomRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    rules.put("dropout", new Windowed(3, false));
    for (String op : List.of("uniform_", "normal_", "random_")) {
      rules.put(op, new Windowed(4, true));
    }
  }

  /**
   * Runs on a block of the whole.
   *
   * @param window where the attributes take the whole's shape and the block's start
   */
  private record Windowed(int window, boolean inPlace) implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.Layouts layouts(Sharding.Call call) {
      List<Placement> kept = new ArrayList<>();
      for (Placement p : call.inputs().get(0).placements()) {
        boolean fits = p instanceof Shard || p.isReplicate();
        if (!fits && inPlace) {
          throw new IllegalArgumentException(
              call.op()
                  + ": a target placed as "
                  + call.inputs().get(0).placements()
                  + " cannot be filled with random values; expected S or R");
        }
        kept.add(fits ? p : Replicate.INSTANCE);
      }
      List<List<Placement>> same = List.of(List.copyOf(kept));
      return new Sharding.Layouts(same, same);
    }

    @Override
    public Attrs localAttrs(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
      DTensorSpec spec = inputs.get(0);
      if (spec.placements().stream().noneMatch(Placement::isShard)) {
        return call.attrs();
      }
      Object[] values = new Object[window + 2];
      for (int i = 0; i < window; i++) {
        values[i] = call.attrs().get(i);
      }
      values[window] = spec.shape();
      values[window + 1] = spec.globalOffset();
      return Attrs.of(values);
    }
  }
}
