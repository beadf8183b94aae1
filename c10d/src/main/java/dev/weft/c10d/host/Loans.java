package dev.weft.c10d.host;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Memory that one collective lends to other ranks of this JVM. The lender counts what is out and
 * may not return to its caller before all of it is back; when it gives up it takes back what nobody
 * reads yet and waits for readers, whose copying is finite.
 */
final class Loans {
  private static final int LENT = 0;
  private static final int READING = 1;
  private static final int BACK = 2;

  private final AtomicInteger out = new AtomicInteger();
  private final List<Loan> all = new ArrayList<>();
  private final List<Runnable> reclaims = new ArrayList<>();
  private final Thread lender = Thread.currentThread();

  /** Lends memory to another thread of this JVM. */
  Loan lend(long address, long bytes) {
    Loan loan = new Loan(address, bytes);
    int unused = out.incrementAndGet();
    all.add(loan);
    return loan;
  }

  /**
   * Lends memory to a connection.
   *
   * @param reclaim ends the use of the memory
   * @return to be run once, when the memory is not used any more
   */
  Runnable lendOut(Runnable reclaim) {
    int unused = out.incrementAndGet();
    reclaims.add(reclaim);
    return this::oneBack;
  }

  private void oneBack() {
    if (out.decrementAndGet() == 0) {
      LockSupport.unpark(lender);
    }
  }

  boolean allBack() {
    return out.get() == 0;
  }

  /** Takes back everything; when this returns nobody reads the memory any more. */
  void revoke() {
    for (Loan loan : all) {
      boolean unused = loan.takeBack();
    }
    reclaims.forEach(Runnable::run);
    while (!allBack()) {
      LockSupport.parkNanos(this, 1_000_000);
    }
  }

  /** One piece of memory that is lent. */
  final class Loan extends Payload {
    private final long address;
    private final long bytes;
    private final AtomicInteger state = new AtomicInteger(LENT);

    private Loan(long address, long bytes) {
      this.address = address;
      this.bytes = bytes;
    }

    /** Takes it back; false when it is being read or has been. */
    boolean takeBack() {
      boolean taken = state.compareAndSet(LENT, BACK);
      if (taken) {
        oneBack();
      }
      return taken;
    }

    @Override
    long bytes() {
      return bytes;
    }

    @Override
    boolean acquire() {
      return state.compareAndSet(LENT, READING);
    }

    @Override
    long address() {
      return address;
    }

    @Override
    void release() {
      if (state.getAndSet(BACK) != BACK) {
        oneBack();
      }
    }
  }
}
