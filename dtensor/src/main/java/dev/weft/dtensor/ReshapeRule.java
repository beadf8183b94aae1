package dev.weft.dtensor;

import dev.weft.tensor.op.Attrs;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * Another shape of the same elements. A cut of a dimension makes equal stretches of the flattened
 * group of dimensions that it belongs to; it lives on in the new shape where some dimension, or
 * equal pieces of one, make the same stretches. Else it is gathered; an uneven one is refused, for
 * its parts have no shape that the user could expect. Attributes: the new shape; a second one,
 * where present, says that uneven cuts are gathered, too.
 */
final class ReshapeRule implements Sharding.Rule {
  /**
   * A cut of a flattened group: {@code pieces} pieces of {@code length} elements, each dealt out in
   * chunks of {@code chunk} elements.
   */
  private record Stretches(long pieces, long length, long chunk) {}

  @Override
  public List<Sharding.Row> rows(Sharding.Call call) {
    return List.of();
  }

  @Override
  public Sharding.Layouts layouts(Sharding.Call call) {
    DTensorSpec spec = call.inputs().get(0);
    long[] from = call.shape(0).clone();
    long[] to = call.outputs()[0].shape().clone();
    List<ViewGroups.Group> groups = ViewGroups.of(from, to);
    boolean lenient = call.attrs().size() > 1;
    List<Placement> in = new ArrayList<>();
    List<Placement> out = new ArrayList<>();
    List<Integer> uneven = new ArrayList<>();
    for (int m = 0; m < spec.placements().size(); m++) {
      Placement p = spec.placements().get(m);
      if (!p.isShard()) {
        in.add(p);
        out.add(p);
        continue;
      }
      int n = spec.mesh().size(m);
      Optional<Placement> result = map(p, n, from, to, groups, uneven);
      int pieces = p instanceof StridedShard s ? s.pieces() : 1;
      boolean even = from[p.shardDim()] % ((long) pieces * n) == 0;
      if (result.isEmpty() && !lenient && !even) {
        throw refused(call, p, m);
      }
      Placement kept = result.isEmpty() ? Replicate.INSTANCE : p;
      in.add(kept);
      out.add(result.orElse(Replicate.INSTANCE));
      if (result.isPresent()) {
        // What the next mesh dimension cuts is this one's part.
        int d = p.shardDim();
        int e = result.get().shardDim();
        if (!even) {
          uneven.add(d);
        }
        from[d] = Layout.length(p, from[d], n, 0);
        to[e] = Layout.length(result.get(), to[e], n, 0);
      }
    }
    return new Sharding.Layouts(List.of(List.copyOf(in)), List.of(List.copyOf(out)));
  }

  private static IllegalArgumentException refused(Sharding.Call call, Placement p, int m) {
    return new IllegalArgumentException(
        call.op()
            + ": "
            + call.inputs().get(0)
            + " cannot become "
            + Arrays.toString(call.outputs()[0].shape())
            + " where it lies: the cut "
            + p
            + " of mesh dimension "
            + m
            + " has no counterpart in the new shape; redistribute it to R, or to another dimension,"
            + " first");
  }

  private static Optional<Placement> map(
      Placement p,
      int n,
      long[] from,
      long[] to,
      List<ViewGroups.Group> groups,
      List<Integer> uneven) {
    int d = p.shardDim();
    for (ViewGroups.Group g : groups) {
      if (!g.from().contains(d)) {
        continue;
      }
      if (g.from().size() == 1 && g.to().size() == 1) {
        return Optional.of(FollowRules.at(p, g.to().get(0)));
      }
      if (g.from().stream().anyMatch(uneven::contains)) {
        return Optional.empty(); // earlier cuts make parts that differ in shape
      }
      return matching(stretches(p, n, from, g.from()), n, to, g.to());
    }
    return ofSizeOne(p, d, from, to, groups);
  }

  /** A dimension of size 1 stays cut where its neighbours show which one it is. */
  private static Optional<Placement> ofSizeOne(
      Placement p, int d, long[] from, long[] to, List<ViewGroups.Group> groups) {
    if (from[d] != 1) {
      return from.length == to.length && Arrays.equals(from, to)
          ? Optional.of(p)
          : Optional.empty();
    }
    int fromStart = 0;
    int toStart = 0;
    int fromEnd = from.length;
    int toEnd = to.length;
    for (ViewGroups.Group g : groups) {
      int last = g.from().get(g.from().size() - 1);
      if (last < d) {
        fromStart = last + 1;
        toStart = g.to().get(g.to().size() - 1) + 1;
      } else if (g.from().get(0) > d) {
        fromEnd = g.from().get(0);
        toEnd = g.to().get(0);
        break;
      } else {
        return Optional.empty(); // between dimensions that merge
      }
    }
    return fromEnd - fromStart == toEnd - toStart
        ? Optional.of(FollowRules.at(p, toStart + d - fromStart))
        : Optional.empty();
  }

  private static Optional<Stretches> stretches(
      Placement p, int n, long[] shape, List<Integer> dims) {
    long before = 1;
    long after = 1;
    for (int d : dims) {
      if (d < p.shardDim()) {
        before *= shape[d];
      } else if (d > p.shardDim()) {
        after *= shape[d];
      }
    }
    int pieces = p instanceof StridedShard s ? s.pieces() : 1;
    long size = shape[p.shardDim()];
    if (pieces == 0 || size % pieces != 0) {
      return Optional.empty();
    }
    long units = size / pieces;
    return Optional.of(
        new Stretches(before * pieces, units * after, Layout.chunk(units, n) * after));
  }

  private static Optional<Placement> matching(
      Optional<Stretches> wanted, int n, long[] to, List<Integer> dims) {
    if (wanted.isEmpty()) {
      return Optional.empty();
    }
    long before = 1;
    for (int e : dims) {
      long pieces = wanted.get().pieces;
      if (pieces % before == 0) {
        long inside = pieces / before;
        Placement p = inside == 1 ? new Shard(e) : new StridedShard(e, Math.toIntExact(inside));
        if (inside <= to[e] && stretches(p, n, to, dims).equals(wanted)) {
          return Optional.of(p);
        }
      }
      before *= to[e];
    }
    return Optional.empty();
  }

  @Override
  public Attrs localAttrs(Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs) {
    return Attrs.of((Object) outputs.get(0).localShape());
  }
}
