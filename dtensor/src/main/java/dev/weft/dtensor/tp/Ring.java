package dev.weft.dtensor.tp;

import dev.weft.c10d.ProcessGroup;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;

/**
 * The ranks along a mesh dimension as a ring: each hands tensors to the one behind it in the order
 * of the mesh. Immutable; used by the thread that acts for the rank.
 *
 * @param n how many ranks
 * @param me this rank's index along the mesh dimension
 */
record Ring(ProcessGroup group, int n, int me, int[] destinations) {
  static Ring of(DeviceMesh mesh, int meshDim) {
    int n = mesh.size(meshDim);
    int[] destinations = new int[n];
    for (int i = 0; i < n; i++) {
      destinations[mesh.groupRank(meshDim, i)] = mesh.groupRank(meshDim, (i + 1) % n);
    }
    return new Ring(mesh.getGroup(meshDim), n, mesh.coordinate(meshDim), destinations);
  }

  /** Gives a tensor to the next rank and returns, at once, what the one before gives. */
  Tensor pass(Tensor t) {
    return FunctionalCollectives.permuteTensor(t, destinations, group);
  }

  /** The index that is so many steps before this rank's. */
  int before(int steps) {
    return Math.floorMod(me - steps, n);
  }
}
