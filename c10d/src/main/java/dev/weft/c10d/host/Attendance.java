package dev.weft.c10d.host;

/**
 * That a thread looks after what comes over a {@link Link} by itself, for a short while. The peer
 * need not call this rank meanwhile. Used by one thread.
 */
interface Attendance extends AutoCloseable {
  /** Of a link that needs none: what comes there is carried by the peer's thread. */
  Attendance NOT_NEEDED =
      new Attendance() {
        @Override
        public boolean progress() {
          return false;
        }

        @Override
        public void close() {}
      };

  /** Carries on what can be; true if there was something. Never waits. */
  boolean progress();

  /** Leaves the link alone. */
  @Override
  void close();
}
