package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.tensor.memory.Memory;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The way to a process of the same machine through two rings of shared memory, one each way, for
 * messages from rank to rank. Threads that wait for a message look after it themselves, see {@link
 * Attendance}; while none does, the peer calls this rank over TCP when there is something to read,
 * or room again for what is to be written. Thread-safe.
 *
 * <p>A rank that stops looking says so and looks once more; one that has written looks whether it
 * was said. Fences between the two on either side see to it that one of them notices.
 */
final class RingConnection extends Connection implements Attendance {
  /** The most bytes that are passed on at a time, so that both sides work at the same time. */
  private static final int STRETCH = 1 << 15;

  private static final int ATTENDED = 0;
  private static final int ASLEEP = 1;
  private static final int ASLEEP_WITH_MORE = 2;
  private static final int LOOKS = 20;

  private final SharedSegment segment;
  private final int mine;
  private final int theirs;
  private final ByteBuffer out;
  private final ByteBuffer in;
  private final long outBase;
  private final long inBase;
  private final int length;
  private final Owner owner;
  private final AtomicInteger attendants = new AtomicInteger();
  private final ReentrantLock reading = new ReentrantLock();
  // Under lock().
  private long written;
  private boolean ended;
  // Under reading.
  private long read;
  private boolean closed;
  private boolean torn;
  // Said by a thread that goes to sleep while another one reads: that one has to look once more.
  private volatile boolean lookAgain;

  /** The connection over TCP beside it. */
  interface Owner {
    /** Has the peer call {@link #called}. */
    void callPeer();

    /** What came could not be taken, and nothing behind it can be: the way to the peer is lost. */
    void broken(Throwable cause);
  }

  /**
   * One end of it.
   *
   * @param mine 0 on the side that made the segment, 1 on the other
   */
  RingConnection(int peer, Mailbox mailbox, SharedSegment segment, int mine, Owner owner) {
    super(peer, mailbox, false);
    this.segment = segment;
    this.mine = mine;
    this.theirs = 1 - mine;
    this.out = segment.slots(mine);
    this.in = segment.slots(theirs);
    this.outBase = Memory.addressOf(out);
    this.inBase = Memory.addressOf(in);
    this.length = out.capacity();
    this.owner = owner;
    segment.setCounter(mine, SharedLayout.SLEEPING, ASLEEP);
  }

  // ---- writing ----

  @Override
  void enqueue(Outgoing outgoing) {
    synchronized (lock()) {
      if (ended) {
        outgoing.abandon();
        return;
      }
      boolean unused = add(outgoing);
    }
    boolean unused = pump();
    settle();
  }

  /** Writes while there is room; true if something was written. */
  private boolean pump() {
    boolean moved = false;
    boolean call;
    synchronized (lock()) {
      while (!ended && !isQueueEmpty()) {
        long room = length - (written - segment.counter(theirs, SharedLayout.READ));
        int at = (int) (written % length);
        int most = (int) Math.min(Math.min(room, length - at), STRETCH);
        if (most == 0) {
          break;
        }
        out.limit(at + most).position(at);
        fill(out, outBase);
        written += out.position() - at;
        segment.setCounter(mine, SharedLayout.WRITTEN, written);
        moved = true;
      }
      call = moved && !ended && isPeerAsleep(ASLEEP);
    }
    if (call) {
      owner.callPeer();
    }
    return moved;
  }

  /** Whether the peer has to be told; it is told once. Under a lock that keeps the memory. */
  private boolean isPeerAsleep(int least) {
    VarHandle.fullFence();
    if (segment.counter(theirs, SharedLayout.SLEEPING) < least) {
      return false;
    }
    segment.setCounter(theirs, SharedLayout.SLEEPING, ATTENDED);
    return true;
  }

  @Override
  boolean isFlushed() {
    boolean unused = pump();
    synchronized (lock()) {
      return ended || isQueueEmpty();
    }
  }

  // ---- reading ----

  /** Reads a stretch; false if there is nothing, or another thread reads. */
  private boolean poll() {
    return !reading.isHeldByCurrentThread() && reading.tryLock() && readAndUnlock();
  }

  /** Reads a stretch; false if there is nothing. Ends the turn of who has {@link #reading}. */
  private boolean readAndUnlock() {
    boolean moved = false;
    boolean call = false;
    Throwable failure = null;
    try {
      moved = read();
      call = moved && isPeerAsleep(ASLEEP_WITH_MORE);
    } catch (RuntimeException | Error e) {
      torn = true;
      failure = e;
    } finally {
      reading.unlock();
    }
    if (failure != null) {
      owner.broken(failure);
    } else if (call) {
      owner.callPeer();
    }
    return moved || lookAgain;
  }

  /** Takes a stretch, if there is one. Under {@link #reading}. */
  private boolean read() {
    if (lookAgain) {
      lookAgain = false;
      VarHandle.fullFence();
    }
    if (closed || torn) {
      return false;
    }
    int at = (int) (read % length);
    long there = segment.counter(theirs, SharedLayout.WRITTEN) - read;
    int n = (int) Math.min(Math.min(there, length - at), STRETCH);
    if (n <= 0) {
      return false;
    }
    in.limit(at + n).position(at);
    take(in, inBase);
    read += n;
    segment.setCounter(mine, SharedLayout.READ, read);
    return true;
  }

  // ---- attending ----

  /** Begins to look after it; to be closed by the same thread, soon. */
  @Override
  public Attendance attend() {
    int unused = attendants.incrementAndGet();
    synchronized (lock()) {
      say(ATTENDED);
    }
    return this;
  }

  @Override
  public boolean progress() {
    boolean wrote = pump();
    return poll() || wrote;
  }

  @Override
  public void close() {
    int unused = attendants.decrementAndGet();
    settle();
  }

  /** The peer has called. */
  void called() {
    try (Attendance here = attend()) {
      int without = 0;
      while (without < LOOKS) {
        if (here.progress()) {
          without = 0;
        } else {
          without++;
          Spinning.yieldToOthers();
        }
      }
    }
  }

  /** Reads all that is there, behind another thread that reads. */
  void drain() {
    boolean more = true;
    while (more) {
      reading.lock();
      more = readAndUnlock();
    }
  }

  /** Where nobody looks after it: asks to be called, unless there is something to do. */
  private void settle() {
    while (attendants.get() == 0 && !reading.isHeldByCurrentThread()) {
      // In one step: no other thread may say that there is nothing where one has just added some.
      synchronized (lock()) {
        say(isQueueEmpty() ? ASLEEP : ASLEEP_WITH_MORE);
      }
      // Another thread may be reading that has looked before the peer could know.
      lookAgain = true;
      if (!progress()) {
        return;
      }
    }
  }

  /** Under {@link #lock}. */
  private void say(int how) {
    if (!ended) {
      segment.setCounter(mine, SharedLayout.SLEEPING, how);
      VarHandle.fullFence();
    }
  }

  // ---- the end ----

  /** Gives up what is not written yet. */
  void end() {
    synchronized (lock()) {
      ended = true;
      abandonQueue();
    }
  }

  /** Gives the memory back. */
  void release() {
    end();
    reading.lock();
    try {
      if (!closed) {
        closed = true;
        free();
        segment.release();
      }
    } finally {
      reading.unlock();
    }
  }

  @Override
  public void wake() {
    throw new DistributedException("ranks are woken over TCP");
  }
}
