package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.List;

/**
 * The cuts that one or several mesh dimensions together make into one tensor dimension, the
 * outermost first. Immutable.
 *
 * @param placements shards of one tensor dimension
 * @param sizes the sizes of the mesh dimensions
 */
record Cuts(List<Placement> placements, int[] sizes) {
  /** A stretch of positions. */
  record Range(long start, long length) {}

  /** One cut. */
  static Cuts of(Placement placement, int n) {
    return new Cuts(List.of(placement), new int[] {n});
  }

  /** How many ranks share the dimension. */
  int ranks() {
    int n = 1;
    for (int s : sizes) {
      n *= s;
    }
    return n;
  }

  /** The tensor dimension. */
  int dim() {
    return placements.get(0).shardDim();
  }

  /** What the rank at an index (row-major over the mesh dimensions) holds of {@code size}. */
  List<Range> ranges(long size, int index) {
    List<Range> held = List.of(new Range(0, size));
    int rest = index;
    int below = ranks();
    for (int m = 0; m < sizes.length; m++) {
      below /= sizes[m];
      int at = rest / below;
      rest %= below;
      long length = length(held);
      held = within(held, ranges(placements.get(m), length, sizes[m], at));
    }
    return held;
  }

  /** How many positions the rank at an index holds. */
  long length(long size, int index) {
    return length(ranges(size, index));
  }

  /** The length of the longest part, which the first index holds. */
  long longest(long size) {
    return length(size, 0);
  }

  /** True where every rank holds as much. */
  boolean isEven(long size) {
    return longest(size) * ranks() == size;
  }

  /** True where a rank's positions follow each other. */
  boolean isPlain() {
    return placements.size() == 1 && placements.get(0) instanceof Shard;
  }

  static long length(List<Range> ranges) {
    long n = 0;
    for (Range r : ranges) {
      n += r.length;
    }
    return n;
  }

  /** The parts of one cut. */
  static List<Range> ranges(Placement p, long size, int n, int index) {
    if (p instanceof StridedShard s) {
      List<Range> out = new ArrayList<>();
      for (int i = 0; i < s.pieces(); i++) {
        long start = Layout.start(size, s.pieces(), i);
        long piece = Layout.length(size, s.pieces(), i);
        long length = Layout.length(piece, n, index);
        if (length > 0) {
          out.add(new Range(start + Layout.start(piece, n, index), length));
        }
      }
      return out;
    }
    return List.of(new Range(Layout.start(size, n, index), Layout.length(size, n, index)));
  }

  /** Positions of what is held, as positions of what it is held of. */
  static List<Range> within(List<Range> held, List<Range> inner) {
    List<Range> out = new ArrayList<>();
    for (Range r : inner) {
      long skip = r.start;
      long left = r.length;
      for (Range h : held) {
        if (left == 0) {
          break;
        }
        if (skip >= h.length) {
          skip -= h.length;
          continue;
        }
        long take = Math.min(left, h.length - skip);
        out.add(new Range(h.start + skip, take));
        left -= take;
        skip = 0;
      }
    }
    return out;
  }
}
