package dev.weft.c10d.host;

import java.util.function.BooleanSupplier;

/** A short busy wait before a thread parks, where processors are to spare. Stateless. */
final class Spinning {
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();
  private static final int TURNS = PROCESSORS > 2 ? 2000 : 0;

  /** How often a thread that has to ask a library yields before it sleeps between questions. */
  static final int YIELDS = PROCESSORS > 2 ? 2000 : 20;

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

  /** Lets others run, between two questions to a library: several ranks may share a processor. */
  @SuppressWarnings("ThreadPriorityCheck") // it saves time only; nothing depends on it
  static void yieldToOthers() {
    Thread.yield();
  }
}
