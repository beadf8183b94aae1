package dev.weft.c10d.host;

import java.util.function.BooleanSupplier;

/** A short busy wait before a thread parks, where processors are to spare. Stateless. */
final class Spinning {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();
  private static final int TURNS = PROCESSORS > 2 ? 2000 : 0;

  private Spinning() {}

  static boolean until(BooleanSupplier done) {
    for (int i = 0; i < TURNS; i++) {
      if (done.getAsBoolean()) {
        return true;
      }
      Thread.onSpinWait();
    }
    return done.getAsBoolean();
  }
}
