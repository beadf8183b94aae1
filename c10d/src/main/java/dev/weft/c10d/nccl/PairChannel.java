package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclRecv;
import static org.bytedeco.cuda.global.nccl.ncclSend;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Messages between this rank and one peer. Thread-safe; messages go in the order of the calls.
 *
 * <p>Meeting the peer for the first time, in either direction, takes until it comes, too. Posting
 * must not wait for that: until then, posted messages are launched by a thread of their own, behind
 * what the poster's stream had been given by then.
 */
final class PairChannel {
  private static final Logger LOG = LoggerFactory.getLogger(PairChannel.class);

  private final NcclGroup group;
  private final Communicators communicators;
  private final int rank;
  private final int peer;
  private final AtomicLong sends = new AtomicLong();
  private final AtomicLong receives = new AtomicLong();
  private final Object creation = new Object();
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

  PairChannel(NcclGroup group, Communicators communicators, int rank, int peer) {
    this.group = group;
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
    launch(m, false);
  }

  /** Launches a message, or has it launched. */
  void post(Message m) {
    synchronized (this) {
      Throwable s = stopped;
      if (s != null) {
        throw group.unusable(m.work().opName(), s);
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
    launch(m, true);
  }

  private void drain() {
    while (true) {
      List<Post> next = new ArrayList<>();
      try {
        // Meeting the peer takes long; what is posted meanwhile goes along.
        communicator(firstDevice());
      } catch (RuntimeException | Error e) {
        failPosts(e);
      }
      synchronized (this) {
        next.addAll(posts);
        posts.clear();
        if (next.isEmpty()) {
          draining = false;
          notifyAll();
          return;
        }
      }
      try {
        launchTogether(next);
      } catch (RuntimeException | Error e) {
        LOG.debug("messages between ranks {} and {} failed", rank, peer, e);
      } finally {
        for (Post p : next) {
          p.message().staging().close();
          p.after().close();
        }
      }
    }
  }

  private synchronized int firstDevice() {
    Post first = posts.peek();
    return first == null ? 0 : first.message().device();
  }

  private void failPosts(Throwable cause) {
    List<Post> failed;
    synchronized (this) {
      failed = new ArrayList<>(posts);
      posts.clear();
    }
    for (Post p : failed) {
      p.message().work().fail(cause);
      p.message().work().letGo();
      p.message().staging().close();
      p.after().close();
    }
  }

  /** A send and a receive in one group meet their counterparts in whatever order those come. */
  private void launchTogether(List<Post> batch) {
    NcclCommunicator c;
    Staging staging = new Staging();
    List<NcclWork> works = new ArrayList<>();
    try {
      c = communicator(batch.get(0).message().device());
      for (Post p : batch) {
        c.stream().waitFor(p.after());
        staging.takeOver(p.message().staging());
        works.add(p.message().work());
      }
    } catch (RuntimeException | Error e) {
      for (Post p : batch) {
        p.message().work().fail(e);
        p.message().work().letGo();
      }
      staging.close();
      throw e;
    }
    try {
      c.launchAll(
          works,
          true,
          batch.get(0).after(),
          staging,
          (on, stream) -> {
            int begun = ncclGroupStart();
            if (begun != ncclSuccess) {
              return begun;
            }
            int bad = ncclSuccess;
            for (Post p : batch) {
              int code = call(p.message(), on, stream);
              if (code != ncclSuccess && code != ncclInProgress && bad == ncclSuccess) {
                bad = code;
              }
            }
            int code = ncclGroupEnd();
            return bad != ncclSuccess ? bad : code;
          });
    } finally {
      staging.close();
    }
    batch.forEach(p -> met(p.message()));
  }

  private void launch(Message m, boolean async) {
    communicator(m.device())
        .launch(m.work(), async, null, m.staging(), (on, stream) -> call(m, on, stream));
    met(m);
  }

  private int call(Message m, NcclCommunicator on, CUstream_st stream) {
    int other = rank < peer ? 1 : 0;
    if (m.count() == 0) {
      return ncclSuccess;
    }
    return m.send()
        ? ncclSend(on.source(m.address()), m.count(), m.dtype(), other, on.handle(), stream)
        : ncclRecv(on.target(m.address()), m.count(), m.dtype(), other, on.handle(), stream);
  }

  private synchronized void met(Message m) {
    if (m.send()) {
      hasSent = true;
    } else {
      hasReceived = true;
    }
  }

  private NcclCommunicator communicator(int device) {
    NcclCommunicator c = communicator;
    if (c == null) {
      synchronized (creation) {
        c = communicator;
        if (c == null) {
          c = communicators.makePair(peer, device);
          communicator = c;
        }
      }
    }
    return c;
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
            "group " + group.describeGroup() + " has been destroyed"));
  }
}
