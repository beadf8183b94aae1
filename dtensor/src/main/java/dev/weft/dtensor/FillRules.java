package dev.weft.dtensor;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Operators that write a number everywhere and do not read what was there. */
final class FillRules {
  private FillRules() {}

  /** A new tensor cut as the given one; whole where a reduction is outstanding. */
  static final class Like implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.Layouts layouts(Sharding.Call call) {
      List<Placement> in = call.inputs().get(0).placements();
      List<Placement> out = new ArrayList<>();
      for (Placement p : in) {
        out.add(p.isPartial() ? Replicate.INSTANCE : p);
      }
      return new Sharding.Layouts(
          List.of(in), Collections.nCopies(call.outputs().length, List.copyOf(out)));
    }
  }

  /** The target keeps its placements; contributions are such that their reduction is the number. */
  static final class InPlaceFill implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      return List.of();
    }

    @Override
    public Sharding.Layouts layouts(Sharding.Call call) {
      List<List<Placement>> same = List.of(call.inputs().get(0).placements());
      return new Sharding.Layouts(same, same);
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return InPlaceFill::run;
    }

    private static Tensor[] run(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      DTensorSpec spec = inputs.get(0);
      Number value = call.attrs().get(0, Number.class);
      for (int m = 0; m < spec.mesh().ndim(); m++) {
        if (spec.placements().get(m) instanceof Partial p) {
          value = share(value, p, spec, m);
        }
      }
      return Dispatcher.callAll(call.op(), Attrs.of(value), local);
    }

    private static Number share(Number value, Partial p, DTensorSpec spec, int m) {
      boolean first = spec.mesh().coordinate(m) == 0;
      return switch (p.op()) {
        case SUM ->
            spec.dtype().isFloatingPoint()
                ? (Number) (value.doubleValue() / spec.mesh().size(m))
                : first ? value : (Number) 0;
        case AVG, MIN, MAX -> value;
        case PRODUCT -> first ? value : (Number) 1;
        case NORM -> first ? value : (Number) 0;
      };
    }
  }
}
