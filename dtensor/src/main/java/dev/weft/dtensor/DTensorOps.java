package dev.weft.dtensor;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The catalogue entries that lead into, between and out of distributed tensors. */
final class DTensorOps {
  private DTensorOps() {}

  /** Attributes: target placements, source placements. */
  static final Op REDISTRIBUTE =
      Op.composite(
              "dtensor.redistribute",
              (in, a) -> {
                DTensor t = (DTensor) in[0];
                List<Placement> to = placements(a, 0);
                return new Tensor[] {
                  new DTensor(t.spec().with(to), Redistribution.run(t.local(), t.spec(), to))
                };
              })
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) ->
                  new @Nullable Tensor[] {
                    g[0] == null ? null : settle((DTensor) g[0], placements(ctx.attrs(), 1))
                  });

  /** Attributes: spec, placements of the gradient or null. */
  static final Op TO_LOCAL =
      Op.composite("dtensor.to_local", (in, a) -> new Tensor[] {((DTensor) in[0]).local().alias()})
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) -> {
                if (g[0] == null) {
                  return new @Nullable Tensor[] {null};
                }
                DTensorSpec spec = ctx.attrs().get(0, DTensorSpec.class);
                List<Placement> placements =
                    ctx.attrs().isNull(1)
                        ? withoutPartial(spec.placements())
                        : placements(ctx.attrs(), 1);
                return new @Nullable Tensor[] {new DTensor(spec.with(placements), g[0].plain())};
              });

  /** Attributes: spec, placements of the gradient or null. */
  static final Op FROM_LOCAL =
      Op.composite(
              "dtensor.from_local",
              (in, a) ->
                  new Tensor[] {
                    new DTensor(a.get(0, DTensorSpec.class), ((StridedTensor) in[0]).alias())
                  })
          .gradient(
              Op.Saves.NOTHING,
              (ctx, g) -> {
                if (g[0] == null) {
                  return new @Nullable Tensor[] {null};
                }
                List<Placement> to =
                    ctx.attrs().isNull(1)
                        ? withoutPartial(ctx.attrs().get(0, DTensorSpec.class).placements())
                        : placements(ctx.attrs(), 1);
                return new @Nullable Tensor[] {((DTensor) g[0]).redistributeTo(to).local()};
              });

  /**
   * A gradient in the placements of what it is the gradient of; where that is a Partial the
   * gradient is whole on every rank, for each contribution counts fully.
   */
  static DTensor settle(DTensor gradient, List<Placement> like) {
    List<Placement> to = new ArrayList<>();
    for (int m = 0; m < like.size(); m++) {
      Placement p = like.get(m);
      to.add(p.isPartial() && !gradient.placements().get(m).isPartial() ? Replicate.INSTANCE : p);
    }
    return gradient.redistributeTo(List.copyOf(to));
  }

  private static List<Placement> withoutPartial(List<Placement> placements) {
    List<Placement> out = new ArrayList<>();
    for (Placement p : placements) {
      out.add(p.isPartial() ? Replicate.INSTANCE : p);
    }
    return List.copyOf(out);
  }

  @SuppressWarnings("unchecked") // only this module makes these attributes
  private static List<Placement> placements(Attrs attrs, int i) {
    return (List<Placement>) attrs.get(i, List.class);
  }
}
