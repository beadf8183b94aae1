package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreTimeoutException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The exchanges on one connection that take several steps. The connection is in step afterwards
 * unless an {@link IOException} comes out.
 */
final class Exchanges {
  /** How long an answer may take that comes at once, where a deadline leaves less. */
  static final Duration ANSWER_TIME = Duration.ofSeconds(3);

  private static final int MISSING_LOOKED_UP = 32;

  private Exchanges() {}

  /**
   * Waits until all keys are there.
   *
   * @param store names the store in messages
   * @throws StoreTimeoutException if the deadline passes before
   */
  static void awaitKeys(Connection c, List<String> keys, Deadline deadline, Object store)
      throws IOException {
    if (deadline.hasPassed()
        ? check(c, keys)
        : awaitRelease(c, WireRequest.of(Query.WAIT).keys(keys), deadline)) {
      return;
    }
    var lookedUp = keys.subList(0, Math.min(MISSING_LOOKED_UP, keys.size()));
    var missing = new ArrayList<String>();
    for (String key : lookedUp) {
      if (!check(c, List.of(key))) {
        missing.add(key);
      }
    }
    if (missing.isEmpty() && lookedUp.size() == keys.size()) {
      return; // the last of them came just now
    }
    throw new StoreTimeoutException(TableStore.waitTimedOut(store, keys, missing, deadline));
  }

  private static boolean check(Connection c, List<String> keys) throws IOException {
    var deadline = answerTime(Deadline.after(Duration.ZERO));
    c.send(WireRequest.of(Query.CHECK).keys(keys), deadline);
    return c.readByte(deadline) == Query.READY;
  }

  /**
   * What is left of a deadline, and a little where nothing is, for an answer that comes at once.
   */
  static Deadline answerTime(Deadline deadline) {
    return deadline.remaining().compareTo(ANSWER_TIME) > 0 ? deadline : Deadline.after(ANSWER_TIME);
  }

  /**
   * Sends a request that parks this connection; returns whether it was released in time, and
   * cancels if not.
   */
  static boolean awaitRelease(Connection c, WireRequest request, Deadline deadline)
      throws IOException {
    c.send(request, deadline);
    try {
      expectReady(c.readByte(deadline));
      return true;
    } catch (SocketTimeoutException e) {
      var cancelling = Deadline.after(ANSWER_TIME);
      c.send(WireRequest.of(Query.CANCEL_WAIT), cancelling);
      byte answer = c.readByte(cancelling);
      if (answer == Query.CANCELED) {
        return false;
      }
      // The release crossed the cancellation.
      expectReady(answer);
      c.readByte(cancelling);
      return true;
    }
  }

  private static void expectReady(byte answer) throws IOException {
    if (answer != Query.READY) {
      throw new IOException("the server answered a wait with " + answer + "; expected 0");
    }
  }

  static Optional<byte[]> pop(Connection c, String key, Deadline deadline) throws IOException {
    c.send(WireRequest.of(Query.QUEUE_POP).key(key), deadline);
    return c.readNumber(deadline) == 0 ? Optional.empty() : Optional.of(c.readValue(deadline));
  }
}
