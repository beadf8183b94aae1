package dev.weft.c10d;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Closing what must not stop the closing of the rest. */
final class Closing {
  private static final Logger LOG = LoggerFactory.getLogger(Closing.class);

  private Closing() {}

  /** Closes; a failure is logged, since nobody is left to handle it. */
  static void quietly(AutoCloseable resource) {
    try {
      resource.close();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) {
      LOG.debug("closing {} failed", resource, e);
    }
  }
}
