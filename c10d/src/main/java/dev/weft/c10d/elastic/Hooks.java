package dev.weft.c10d.elastic;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Shutdown hooks that may be added and removed at any time. */
final class Hooks {
  private static final Logger log = LoggerFactory.getLogger(Hooks.class);

  private Hooks() {}

  /** Adds a hook; false if the JVM ends already. */
  static boolean add(Thread hook) {
    try {
      Runtime.getRuntime().addShutdownHook(hook);
      return true;
    } catch (IllegalStateException e) {
      log.debug("the JVM ends already", e);
      return false;
    }
  }

  static void remove(Thread hook) {
    try {
      boolean unused = Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      log.debug("the JVM ends, and the hook runs", e);
    }
  }
}
