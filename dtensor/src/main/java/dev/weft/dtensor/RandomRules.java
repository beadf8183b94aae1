package dev.weft.dtensor;

import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
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
        boolean fits = p.isShard() || p.isReplicate();
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

    /** Seed and position differ from call to call and decide nothing. */
    @Override
    public Attrs decisive(Attrs attrs) {
      return Attrs.NONE;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return this::run;
    }

    private Tensor[] run(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      DTensorSpec spec = inputs.get(0);
      if (spec.placements().stream().noneMatch(Placement::isShard)) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      List<LocalBlock> blocks = spec.localBlocks();
      if (blocks.size() == 1) {
        return Dispatcher.callAll(call.op(), windowed(call.attrs(), spec, blocks.get(0)), local[0]);
      }
      Tensor target =
          inPlace ? local[0] : Tensors.empty(local[0].dtype(), local[0].device(), local[0].shape());
      for (LocalBlock block : blocks) {
        StridedTensor part = block.of((StridedTensor) local[0]);
        Tensor values = Dispatcher.call(call.op(), windowed(call.attrs(), spec, block), part);
        if (!inPlace) {
          Regions.copy((StridedTensor) values, block.of((StridedTensor) target));
        }
      }
      return new Tensor[] {target};
    }

    private Attrs windowed(Attrs attrs, DTensorSpec spec, LocalBlock block) {
      Object[] values = new Object[window + 2];
      for (int i = 0; i < window; i++) {
        values[i] = attrs.get(i);
      }
      values[window] = spec.shape();
      values[window + 1] = block.globalStart();
      return Attrs.of(values);
    }
  }
}
