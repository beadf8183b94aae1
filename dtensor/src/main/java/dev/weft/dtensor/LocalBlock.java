package dev.weft.dtensor;

import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.List;

/**
 * A block of a distributed tensor that lies on this rank.
 *
 * @param globalStart its first position in the whole tensor
 * @param localStart its first position in the rank's part
 * @param shape its sizes
 */
public record LocalBlock(long[] globalStart, long[] localStart, long[] shape) {
  /** The block as a view of the part. */
  public StridedTensor of(StridedTensor part) {
    StridedTensor view = part;
    for (int d = 0; d < shape.length; d++) {
      view = Regions.narrow(view, d, localStart[d], shape[d]);
    }
    return view;
  }

  static List<LocalBlock> of(DTensorSpec spec) {
    int[] mesh = spec.mesh().shape();
    int[] at = spec.mesh().getCoordinate();
    if (at == null) {
      return List.of();
    }
    int n = spec.shape().length;
    List<LocalBlock> blocks = List.of(new LocalBlock(new long[n], new long[n], new long[n]));
    for (int d = 0; d < n; d++) {
      List<LocalBlock> next = new ArrayList<>();
      for (LocalBlock b : blocks) {
        long local = 0;
        for (Cuts.Range r : Layout.held(spec.shape()[d], d, mesh, spec.placements(), at)) {
          LocalBlock cut =
              new LocalBlock(b.globalStart.clone(), b.localStart.clone(), b.shape.clone());
          cut.globalStart[d] = r.start();
          cut.localStart[d] = local;
          cut.shape[d] = r.length();
          next.add(cut);
          local += r.length();
        }
      }
      blocks = next;
    }
    return blocks;
  }
}
