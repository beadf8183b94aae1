package dev.weft.c10d.nccl;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets go of NCCL when the JVM ends, by a signal say, while groups are there: a kernel that waits
 * for a rank that does not come any more would hold up the end of the process for ever, in CUDA's
 * own code. Nothing is launched from then on, by no thread; what is under way gets a little time,
 * then it is aborted. Communicators that are idle are left alone.
 */
final class NcclExit {
  private static final Logger LOG = LoggerFactory.getLogger(NcclExit.class);
  private static final Duration GRACE = Duration.ofSeconds(2);
  private static boolean registered;
  private static boolean ending;

  private NcclExit() {}

  /**
   * Has it done at the end of this JVM; once. Called when a communicator is known to the monitor.
   *
   * @return false where the JVM ends already
   */
  static synchronized boolean register() {
    if (!registered) {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(NcclExit::end, "weft-nccl-exit"));
        registered = true;
      } catch (IllegalStateException e) {
        LOG.debug("the JVM ends already, with a communicator just made", e);
        ending = true;
      }
    }
    return !ending;
  }

  private static void end() {
    List<NcclCommunicator> communicators;
    synchronized (NcclExit.class) {
      ending = true;
      communicators = new ArrayList<>(NcclMonitor.communicators());
    }
    for (NcclCommunicator c : communicators) {
      c.refuse();
    }
    Deadline deadline = Deadline.after(GRACE);
    DistributedException cause = new DistributedException("the process ends");
    List<Thread> aborts = new ArrayList<>();
    communicators.sort(Comparator.comparing(c -> c.failure() == null)); // those do not wait
    for (NcclCommunicator c : communicators) {
      Thread abort = c.end().abortUnlessIdle(deadline, cause);
      if (abort != null) {
        aborts.add(abort);
      }
    }
    Deadline last = CommunicatorEnd.abortLimit();
    for (Thread abort : aborts) {
      try {
        abort.join(Math.max(1, last.remainingMillis()));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }
}
