package dev.weft.c10d.host;

import dev.weft.c10d.CompletableWork;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.PeerFailedException;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A send or receive that was posted. Thread-safe. Nothing runs for it until its other side comes,
 * so its time limit is kept by who awaits it.
 */
final class MessageWork extends CompletableWork {
  /** Takes the posted operation back; false when it is being carried out. */
  interface Canceller {
    boolean cancel();
  }

  private final HostGroup group;
  private final int peer;
  private final int tag;
  private final Deadline deadline;
  private volatile @Nullable Canceller canceller;
  private volatile int source = -1;

  MessageWork(
      String name, HostGroup group, long sequence, int peer, int tag, StridedTensor t, Deadline d) {
    super(
        name,
        sequence,
        name.equals("recv") ? List.<Tensor>of(t) : List.<Tensor>of(),
        List.<Storage>of(t.storage()));
    this.group = group;
    this.peer = peer;
    this.tag = tag;
    this.deadline = d;
  }

  void canceller(Canceller canceller) {
    this.canceller = canceller;
  }

  void arrivedFrom(int groupRank) {
    this.source = groupRank;
  }

  @Override
  public int sourceRank() {
    if (source < 0) {
      throw new IllegalStateException(
          describe() + " has no source rank; expected a receive that is done");
    }
    return source;
  }

  String peerName(int groupRank) {
    return groupRank < 0 ? "any rank" : "rank " + group.globalRank(groupRank);
  }

  String describe() {
    String direction = opName().equals("send") ? " to " : " from ";
    return opName()
        + direction
        + peerName(peer)
        + " (tag "
        + tag
        + ") on rank "
        + group.globalRank(group.rank())
        + " in group "
        + group.describe();
  }

  PeerFailedException peerFailed(Failure failure) {
    return new PeerFailedException(
        describe() + " cannot end: " + failure.describe(), failure.cause());
  }

  @Override
  public void await() {
    if (!isCompleted()) {
      MessageWait.await(group, peer, deadline, this::isCompleted);
    }
    if (!isCompleted() && !doneWithin(deadline.remaining())) {
      String what = opName().equals("send") ? " did not receive it" : " did not send it";
      endBy(
          new OperationTimeoutException(
              describe()
                  + " timed out after "
                  + deadline.timeout().toMillis()
                  + " ms: "
                  + peerName(peer)
                  + what));
    }
    super.await();
  }

  @Override
  protected String describeProgress() {
    return ": waiting for " + peerName(peer);
  }

  /** Ends it with a failure unless it is just being carried out. */
  void endBy(RuntimeException failure) {
    Canceller c = canceller;
    if (c == null || c.cancel()) {
      boolean unused = fail(failure);
    }
  }

  private boolean doneWithin(Duration time) {
    try {
      super.await(time);
      return true;
    } catch (OperationTimeoutException e) {
      return isCompleted();
    } catch (RuntimeException e) {
      if (!isCompleted()) {
        throw e;
      }
      return true;
    }
  }
}
