package dev.weft.c10d.host;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.tensor.StridedTensor;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Sends and receives of one group on one rank. Thread-safe; posting never waits. */
final class Messages implements Mailbox.Watcher {
  private final HostGroup group;
  private final AtomicLong sequence = new AtomicLong();
  private final Set<Sending> underWay = ConcurrentHashMap.newKeySet();
  private volatile @Nullable RuntimeException ended;

  Messages(HostGroup group) {
    this.group = group;
    group.mailbox().watch(this);
  }

  /** A send that is not taken yet. */
  private final class Sending implements Parcel.Outcome {
    private final MessageWork work;
    private final int destination;
    private final Staging staging;
    private final Link.Posting posting;

    Sending(MessageWork work, Staging staging, int destination, int tag, StridedTensor tensor) {
      this.work = work;
      this.staging = staging;
      this.destination = destination;
      this.posting =
          group
              .link(destination)
              .prepare(
                  new Link.Letter(
                      group.id(),
                      group.rank(),
                      tag,
                      tensor.dtype(),
                      tensor.numel(),
                      staging.in(tensor),
                      this));
    }

    @Override
    public void taken() {
      end();
      boolean unused = work.complete();
    }

    @Override
    public void refused(RuntimeException why) {
      end();
      boolean unused = work.fail(why);
    }

    /** Takes the message back; false when it is being received. */
    boolean cancel() {
      if (!posting.cancel()) {
        return false;
      }
      end();
      return true;
    }

    private void end() {
      if (underWay.remove(this)) {
        staging.close();
      }
    }
  }

  Work send(StridedTensor tensor, int destination, int tag, CollectiveOptions options) {
    MessageWork work = work("send", tensor, destination, tag, options);
    Staging staging = new Staging();
    Sending sending;
    try {
      sending = new Sending(work, staging, destination, tag, tensor);
    } catch (RuntimeException | Error e) {
      staging.close();
      boolean unused = work.fail(e);
      throw e;
    }
    work.canceller(sending::cancel);
    underWay.add(sending);
    sending.posting.post();
    failIfPeerIsGone(work, destination);
    return finish(work, options);
  }

  Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options) {
    MessageWork work = work("recv", tensor, source, tag, options);
    int global = source == ProcessGroup.ANY_SOURCE ? source : group.globalRank(source);
    Receipt receipt = new Receipt(group.id(), source, global, tag, tensor, work);
    ParcelBox box = group.mailbox().parcels();
    work.canceller(() -> box.cancel(receipt));
    box.post(receipt);
    failIfPeerIsGone(work, source);
    return finish(work, options);
  }

  private MessageWork work(
      String name, StridedTensor tensor, int peer, int tag, CollectiveOptions options) {
    Duration timeout = options.timeout() == null ? group.context().timeout() : options.timeout();
    MessageWork work =
        new MessageWork(
            name, group, sequence.incrementAndGet(), peer, tag, tensor, Deadline.after(timeout));
    RuntimeException end = ended;
    if (end != null) {
      boolean unused = work.fail(end);
      throw end;
    }
    return work;
  }

  /** What ended before the message was posted is not told again. */
  private void failIfPeerIsGone(MessageWork work, int peer) {
    if (work.isCompleted()) {
      return;
    }
    Failure failure = group.mailbox().failure();
    if (failure != null) {
      work.endBy(work.peerFailed(failure));
    } else if (peer >= 0 && group.mailbox().hasLeft(group.globalRank(peer))) {
      work.endBy(ParcelBox.left(work, group.globalRank(peer)));
    }
  }

  private static Work finish(MessageWork work, CollectiveOptions options) {
    if (!options.async()) {
      work.await();
    }
    return work;
  }

  /** Ends the sends that another rank's end stops; receives are ended by the mailbox. */
  @Override
  public void peerEnded(int globalRank, @Nullable Failure failure) {
    for (Sending s : underWay) {
      if (failure != null) {
        s.work.endBy(s.work.peerFailed(failure));
      } else if (group.globalRank(s.destination) == globalRank) {
        s.work.endBy(ParcelBox.left(s.work, globalRank));
      }
    }
  }

  void abort(RuntimeException cause) {
    ended = cause;
    for (Sending s : underWay) {
      s.work.endBy(cause);
    }
    group.mailbox().parcels().failGroup(group.id(), cause);
  }

  void close() {
    group.mailbox().unwatch(this);
    abort(new IllegalStateException("group " + group.describe() + " has been destroyed"));
  }
}
