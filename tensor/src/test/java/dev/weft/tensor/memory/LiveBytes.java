package dev.weft.tensor.memory;

/** The count of native bytes, once the garbage of earlier tests is gone. */
public final class LiveBytes {
  private LiveBytes() {}

  /** Collects until the count stays the same, then returns it. */
  public static long settled() {
    long before = -1;
    for (int same = 0, round = 0; same < 3 && round < 50; round++) {
      StorageCleaner.collectAndDrain();
      long now = HostMemory.liveBytes();
      same = now == before ? same + 1 : 0;
      before = now;
    }
    return before;
  }
}
