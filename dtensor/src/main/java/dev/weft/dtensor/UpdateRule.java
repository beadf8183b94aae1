package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * An optimiser's update, which writes the parameter (input 0) and its state (inputs 2 and on): all
 * of these lie alike, and the gradient (input 1) is brought to where they are.
 */
final class UpdateRule implements Sharding.Rule {
  @Override
  public List<Sharding.Row> rows(Sharding.Call call) {
    return List.of();
  }

  @Override
  public Sharding.Layouts layouts(Sharding.Call call) {
    List<Placement> target = call.inputs().get(0).placements();
    List<List<Placement>> in = new ArrayList<>();
    for (int i = 0; i < call.inputs().size(); i++) {
      List<Placement> placements = call.inputs().get(i).placements();
      if (i != 1 && (call.inputs().get(i).hasPartial() || !placements.equals(target))) {
        throw new IllegalArgumentException(
            call.op()
                + ": a parameter placed as "
                + target
                + " with state placed as "
                + placements
                + "; both are written, so they must lie alike and have no reduction outstanding");
      }
      in.add(target);
    }
    return new Sharding.Layouts(in, Collections.nCopies(call.outputs().length, target));
  }
}
