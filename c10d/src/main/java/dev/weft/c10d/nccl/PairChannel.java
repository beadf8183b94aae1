package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclRecv;
import static org.bytedeco.cuda.global.nccl.ncclSend;

import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Messages between this rank and one peer. Thread-safe; messages go in the order of the calls.
 *
 * <p>Meeting the peer for the first time, in either direction, takes until it comes, too. Posting
 * must not wait for that: until then, posted messages are launched by a thread of their own, behind
 * what the poster's stream had been given by then.
 */
final class PairChannel {
  private final NcclBackend backend;
  private final Communicators communicators;
  private final int rank;
  private final int peer;
  private final AtomicLong sends = new AtomicLong();
  private final AtomicLong receives = new AtomicLong();
  private final ArrayDeque<Post> posts = new ArrayDeque<>();
  private volatile @Nullable NcclCommunicator communicator;
  private boolean hasSent;
  private boolean hasReceived;
  private boolean draining;
  private @Nullable Throwable stopped;

  private record Post(Message message, CudaEvent after) {}

  /** One message. */
  record Message(
      boolean send,
      NcclWork work,
      int device,
      long address,
      long count,
      int dtype,
      Staging staging) {}

  PairChannel(NcclBackend backend, Communicators communicators, int rank, int peer) {
    this.backend = backend;
    this.communicators = communicators;
    this.rank = rank;
    this.peer = peer;
  }

  long nextNumber(boolean send) {
    return (send ? sends : receives).incrementAndGet();
  }

  /** Launches a message; returns when that has happened. */
  void now(Message m) {
    synchronized (this) {
      while (draining && stopped == null) {
        try {
          wait(100);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new dev.weft.c10d.DistributedException(
              "interrupted before " + m.work().describe() + " was launched", e);
        }
      }
    }
    launch(m, false, null);
  }

  /** Launches a message, or has it launched. */
  void post(Message m) {
    synchronized (this) {
      Throwable s = stopped;
      if (s != null) {
        throw backend.unusable(m.work().opName(), s);
      }
      boolean met = m.send() ? hasSent : hasReceived;
      if (!met || draining) {
        CudaEvent after = new CudaEvent(m.device(), false).record(CudaStream.current(m.device()));
        posts.add(new Post(m, after));
        if (!draining) {
          draining = true;
          Thread thread = new Thread(this::drain, "weft-nccl-pair-" + rank + "-" + peer);
          thread.setDaemon(true);
          thread.start();
        }
        return;
      }
    }
    launch(m, true, null);
  }

  private void drain() {
    while (true) {
      Post next;
      synchronized (this) {
        next = posts.poll();
        if (next == null) {
          draining = false;
          notifyAll();
          return;
        }
      }
      try {
        launch(next.message(), true, next.after());
      } catch (RuntimeException | Error e) {
        next.message().work().fail(e);
        next.message().work().letGo();
      } finally {
        next.message().staging().close();
        next.after().close();
      }
    }
  }

  private void launch(Message m, boolean async, @Nullable CudaEvent after) {
    NcclCommunicator c = communicator;
    if (c == null) {
      synchronized (posts) {
        c = communicator;
        if (c == null) {
          c = communicators.makePair(peer, m.device());
          communicator = c;
        }
      }
    }
    int other = rank < peer ? 1 : 0;
    c.launch(
        m.work(),
        async,
        after,
        m.staging(),
        (on, stream) ->
            m.count() == 0
                ? 0
                : m.send()
                    ? ncclSend(
                        on.source(m.address()), m.count(), m.dtype(), other, on.handle(), stream)
                    : ncclRecv(
                        on.target(m.address()), m.count(), m.dtype(), other, on.handle(), stream));
    synchronized (this) {
      if (m.send()) {
        hasSent = true;
      } else {
        hasReceived = true;
      }
    }
  }

  /** What waits to be launched ends with this failure. */
  void abort(Throwable cause) {
    synchronized (this) {
      stopped = cause;
      for (Post p : posts) {
        p.message().work().fail(cause);
      }
      notifyAll();
    }
  }

  void close() {
    synchronized (this) {
      if (posts.isEmpty() && !draining) {
        return;
      }
    }
    abort(
        new dev.weft.c10d.DistributedException(
            "group " + backend.describeGroup() + " has been destroyed"));
  }
}
