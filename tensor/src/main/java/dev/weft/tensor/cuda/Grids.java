package dev.weft.tensor.cuda;

/** How many blocks a kernel gets whose threads each take several elements, one grid apart. */
final class Grids {
  // Enough waves to even out, few enough to spare launching.
  private static final int BLOCKS_PER_MULTIPROCESSOR = 16;

  private Grids() {}

  static long blocks(int device, long items, int threads) {
    long most = (long) Cuda.properties(device).multiprocessors() * BLOCKS_PER_MULTIPROCESSOR;
    return Math.min(most, (items + threads - 1) / threads);
  }
}
