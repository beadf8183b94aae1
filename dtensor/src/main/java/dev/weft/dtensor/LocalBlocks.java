package dev.weft.dtensor;

import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.List;

/**
 * This rank's part of a tensor as blocks of the whole: one, or several where a strided placement
 * gives it positions that do not follow each other; none where it is empty.
 */
final class LocalBlocks {
  private LocalBlocks() {}

  /**
   * A block.
   *
   * @param globalStart its first position in the whole tensor
   * @param localStart its first position in the part
   * @param shape its sizes
   */
  record Block(long[] globalStart, long[] localStart, long[] shape) {
    /** The block as a view of the part. */
    StridedTensor of(StridedTensor part) {
      StridedTensor view = part;
      for (int d = 0; d < shape.length; d++) {
        view = Regions.narrow(view, d, localStart[d], shape[d]);
      }
      return view;
    }
  }

  static List<Block> of(DTensorSpec spec) {
    int[] mesh = spec.mesh().shape();
    int[] at = spec.mesh().getCoordinate();
    if (at == null) {
      return List.of();
    }
    int n = spec.shape().length;
    List<Block> blocks = List.of(new Block(new long[n], new long[n], new long[n]));
    for (int d = 0; d < n; d++) {
      List<Block> next = new ArrayList<>();
      for (Block b : blocks) {
        long local = 0;
        for (Cuts.Range r : Layout.held(spec.shape()[d], d, mesh, spec.placements(), at)) {
          Block cut =
              new Block(b.globalStart.clone(), b.localStart.clone(), b.shape.clone());
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
