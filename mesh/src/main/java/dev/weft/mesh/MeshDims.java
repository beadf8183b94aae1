package dev.weft.mesh;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** Checks on the dimensions that parts of a mesh are made of. */
final class MeshDims {
  private MeshDims() {}

  /** Refuses dimensions that overlap; returns the number of ranks along all of them. */
  static int checkDisjoint(MeshDim[] chosen, String what) {
    Set<Integer> strides = new HashSet<>();
    int n = 1;
    for (MeshDim d : chosen) {
      n *= d.size();
      for (int i = 0; i < d.sizes().length; i++) {
        if (d.sizes()[i] > 1 && !strides.add(d.strides()[i])) {
          throw new IllegalArgumentException(what + ": the dimensions overlap");
        }
      }
    }
    for (int i = 0; i < chosen.length; i++) {
      for (int j = 0; j < i; j++) {
        if (chosen[i].equals(chosen[j])) {
          throw new IllegalArgumentException(
              what + ": dimension '" + chosen[i].name() + "' is given twice");
        }
      }
    }
    return n;
  }

  /** Refuses sizes that do not multiply to the dimension's, and names of another number. */
  static void checkSizes(int dim, int size, int[] sizes, String[] names) {
    if (names.length != sizes.length) {
      throw new IllegalArgumentException(
          "unflatten: names "
              + Arrays.toString(names)
              + " must be as many as the sizes "
              + Arrays.toString(sizes));
    }
    long product = 1;
    for (int s : sizes) {
      if (s < 1) {
        throw new IllegalArgumentException(
            "unflatten: sizes " + Arrays.toString(sizes) + " must be at least 1");
      }
      product *= s;
    }
    if (product != size) {
      throw new IllegalArgumentException(
          "unflatten: sizes "
              + Arrays.toString(sizes)
              + " have the product "
              + product
              + "; dimension "
              + dim
              + " has size "
              + size);
    }
  }
}
