package dev.weft.c10d;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;

/** A first message between each two ranks: processes of one machine share a ring of memory then. */
public final class Acquaintance {
  private Acquaintance() {}

  /** All ranks of a group call it. */
  public static void make(ProcessGroup group) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor t = Tensor.of(new float[] {1});
      for (int lower = 0; lower < group.rank(); lower++) {
        Work unused = group.recv(t, lower, 0);
      }
      for (int higher = group.rank() + 1; higher < group.size(); higher++) {
        Work unused = group.send(t, higher, 0);
      }
    }
  }
}
