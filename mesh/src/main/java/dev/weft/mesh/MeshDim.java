package dev.weft.mesh;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * One dimension of a mesh as positions in its root: one or more (size, stride) pairs, outermost
 * first. A plain dimension has one pair; a flattened one has a pair for each dimension that went
 * into it. Immutable.
 */
record MeshDim(@Nullable String name, int[] sizes, int[] strides) {
  static MeshDim of(@Nullable String name, int size, int stride) {
    return new MeshDim(name, new int[] {size}, new int[] {stride});
  }

  int size() {
    int n = 1;
    for (int s : sizes) {
      n *= s;
    }
    return n;
  }

  /** The index along this dimension of a position in the root. */
  int indexOf(int position) {
    int index = 0;
    for (int i = 0; i < sizes.length; i++) {
      index = index * sizes[i] + (position / strides[i]) % sizes[i];
    }
    return index;
  }

  /** How far an index lies from index 0 in the root. */
  int offset(int index) {
    int rest = index;
    int offset = 0;
    for (int i = sizes.length - 1; i >= 0; i--) {
      offset += (rest % sizes[i]) * strides[i];
      rest /= sizes[i];
    }
    return offset;
  }

  /**
   * What its groups are for, as traces and reports show it; empty for a dimension without a name.
   */
  String description() {
    return name == null ? "" : name;
  }

  MeshDim named(@Nullable String newName) {
    return new MeshDim(newName, sizes, strides);
  }

  /** All pairs of several dimensions as one. */
  static MeshDim flatten(@Nullable String name, MeshDim... dims) {
    int n = Arrays.stream(dims).mapToInt(d -> d.sizes.length).sum();
    int[] sizes = new int[n];
    int[] strides = new int[n];
    int at = 0;
    for (MeshDim d : dims) {
      System.arraycopy(d.sizes, 0, sizes, at, d.sizes.length);
      System.arraycopy(d.strides, 0, strides, at, d.strides.length);
      at += d.sizes.length;
    }
    return new MeshDim(name, sizes, strides);
  }

  /**
   * Splits this dimension into several, row-major.
   *
   * @throws IllegalArgumentException where a cut would fall inside a pair unevenly
   */
  MeshDim[] split(int[] parts, String[] names) {
    MeshDim[] out = new MeshDim[parts.length];
    int pair = sizes.length - 1;
    int left = pair < 0 ? 1 : sizes[pair];
    for (int p = parts.length - 1; p >= 0; p--) {
      int want = parts[p];
      MeshDim d = new MeshDim(names[p], new int[0], new int[0]);
      while (want > 1) {
        while (left == 1) {
          pair--;
          left = sizes[pair];
        }
        int take = want < left ? want : left;
        if (left % take != 0 || want % take != 0) {
          throw new IllegalArgumentException(
              "sizes " + Arrays.toString(parts) + " do not cut the flattened dimension evenly");
        }
        int stride = strides[pair] * (sizes[pair] / left);
        d = flatten(d.name, MeshDim.of(null, take, stride), d);
        left /= take;
        want /= take;
      }
      out[p] = d.sizes.length == 0 ? MeshDim.of(names[p], 1, 1) : d;
    }
    return out;
  }

  boolean sameLayout(MeshDim other) {
    return Arrays.equals(sizes, other.sizes) && Arrays.equals(strides, other.strides);
  }

  @Override
  public boolean equals(Object o) {
    return o instanceof MeshDim d && java.util.Objects.equals(name, d.name) && sameLayout(d);
  }

  @Override
  public int hashCode() {
    return 31 * (31 * java.util.Objects.hashCode(name) + Arrays.hashCode(sizes))
        + Arrays.hashCode(strides);
  }
}
