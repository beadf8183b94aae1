package dev.weft.c10d.host;

import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.PeerFailedException;
import java.time.Duration;

/** What the store says of the first failure, as endpoints use it. Stateless. */
final class Notices {
  static final Duration TIMEOUT = Duration.ofSeconds(4);

  private Notices() {}

  static PeerFailedException asFailure(FailureNotice notice) {
    return new PeerFailedException(notice.reason() + " " + notice.trace());
  }
}
