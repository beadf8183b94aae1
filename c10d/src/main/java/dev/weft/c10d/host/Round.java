package dev.weft.c10d.host;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.PeerFailedException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One collective being carried out on one rank, by one thread.
 *
 * <p>It starts with an opening: every rank tells every other what it calls. Pieces of at most
 * {@link #INLINE} bytes go along with it; larger ones follow once all calls are known to fit, so no
 * memory is touched when they do not.
 */
final class Round implements AutoCloseable, Supplier<String> {
  /** The longest piece that goes along with an opening. */
  static final int INLINE = 4096;

  private static final long PAUSE_NANOS = 20_000;

  private final HostGroup group;
  private final long sequence;
  private final String operation;
  private final Deadline deadline;
  private final boolean callers;
  private final @Nullable Round whole;
  private @Nullable Loans @Nullable [] loans;
  private @Nullable List<Key> keys;
  private boolean interrupted;
  private volatile @Nullable Supplier<List<Integer>> missing;

  /**
   * A collective about to be carried out.
   *
   * @param callers whether this is its caller's thread, which does nothing else meanwhile
   */
  Round(HostGroup group, long sequence, String operation, Deadline deadline, boolean callers) {
    this(group, sequence, operation, deadline, callers, null);
  }

  private Round(
      HostGroup group,
      long sequence,
      String operation,
      Deadline deadline,
      boolean callers,
      @Nullable Round whole) {
    this.group = group;
    this.sequence = sequence;
    this.operation = operation;
    this.deadline = deadline;
    this.callers = callers;
    this.whole = whole;
  }

  /** A step of it, among some of the group's ranks; with its deadline, and its name in errors. */
  Round step(HostGroup part, long sequence) {
    return new Round(part, sequence, operation, deadline, callers, this);
  }

  /** How a thread waits a while. */
  interface Pause {
    /**
     * Returns early or late.
     *
     * @param nanos the longest wait that makes sense
     * @param turn how often it has waited before, from 0
     */
    void pause(Round blocker, long nanos, int turn);
  }

  HostGroup group() {
    return group;
  }

  /** Whether its caller waits on this very thread. */
  boolean isCallers() {
    return callers;
  }

  /** The collective's number in its group, from 1. */
  long sequence() {
    return sequence;
  }

  /** The number of the call that it is, or is a step of. */
  private long wholeSequence() {
    return whole == null ? sequence : whole.wholeSequence();
  }

  String describe() {
    if (whole != null) {
      return whole.describe();
    }
    return operation
        + " (seq "
        + sequence
        + ") in group "
        + group.describe()
        + " on rank "
        + group.globalRank(group.rank());
  }

  /** As {@link #describe}. */
  @Override
  public String get() {
    return describe();
  }

  /** Global ranks that have not done yet what is waited for. */
  List<Integer> missingRanks() {
    Supplier<List<Integer>> now = missing;
    return now == null ? List.of() : now.get();
  }

  /**
   * Exchanges openings and the pieces that go with them.
   *
   * @param call what this rank calls
   * @param pieces what goes to each rank, null where nothing does; the own place is not looked at
   * @param from which ranks send a piece here
   * @return what came, by rank; null where nothing does
   */
  @Nullable Payload[] exchange(Signature call, @Nullable Piece[] pieces, boolean[] from) {
    int n = group.size();
    Key key = key(0);
    byte[] last = null;
    Piece lastPiece = null;
    for (int r = 0; r < n; r++) {
      if (r == group.rank()) {
        continue;
      }
      Piece piece = pieces[r];
      byte[] inline = null;
      if (piece != null && piece.bytes() <= INLINE) {
        // The same piece for several ranks is copied once.
        inline = piece.equals(lastPiece) ? last : piece.toArray();
        last = inline;
        lastPiece = piece;
      }
      group.link(r).send(key, group.rank(), call, inline);
    }
    Message[] openings = collect(key, others());
    Signature[] calls = new Signature[n];
    for (int r = 0; r < n; r++) {
      calls[r] = r == group.rank() ? call : Objects.requireNonNull(openings[r].signature());
    }
    Agreement.check(group.describe(), sequence, group.globalRanks(), calls);
    return follow(pieces, from, openings);
  }

  private @Nullable Payload[] follow(@Nullable Piece[] pieces, boolean[] from, Message[] openings) {
    int n = group.size();
    @Nullable Piece[] large = new @Nullable Piece[n];
    boolean[] awaited = new boolean[n];
    @Nullable Payload[] arrived = new @Nullable Payload[n];
    for (int r = 0; r < n; r++) {
      if (r == group.rank()) {
        continue;
      }
      Piece piece = pieces[r];
      large[r] = piece != null && piece.bytes() > INLINE ? piece : null;
      Payload inline = openings[r].payload();
      if (from[r] && inline != null) {
        arrived[r] = acquired(inline, r);
      }
      awaited[r] = from[r] && inline == null;
    }
    pass(1, large, awaited, arrived);
    return arrived;
  }

  /** Sends pieces and waits for those of others, which it adds to {@code arrived}. */
  void pass(int phase, @Nullable Piece[] pieces, boolean[] from, @Nullable Payload[] arrived) {
    Key key = null;
    // From the next rank on, so that not all ranks send to the same one first.
    for (int i = 1; i < pieces.length; i++) {
      int r = (group.rank() + i) % pieces.length;
      Piece piece = pieces[r];
      if (piece != null) {
        key = key == null ? key(phase) : key;
        Loans lent = loansTo(r);
        group.link(r).lend(key, group.rank(), piece.address(), piece.bytes(), lent);
      }
    }
    boolean any = false;
    for (boolean b : from) {
      any |= b;
    }
    if (any) {
      Message[] messages = collect(key == null ? key(phase) : key, from);
      for (int r = 0; r < from.length; r++) {
        if (from[r]) {
          arrived[r] = acquired(Objects.requireNonNull(messages[r].payload()), r);
        }
      }
    }
  }

  /** Tells all other ranks something. */
  void tell(int phase, String text) {
    Key key = new Key(group.id(), sequence, phase);
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()) {
        group.link(r).send(key, group.rank(), null, bytes);
      }
    }
  }

  /** Waits for what a rank tells. */
  String toldBy(int phase, int rank) {
    boolean[] from = new boolean[group.size()];
    from[rank] = true;
    return collect(key(phase), from)[rank].text();
  }

  /** Waits for what all ranks tell; the own words are given. */
  String[] toldByAll(int phase, String own) {
    Message[] messages = collect(key(phase), others());
    String[] out = new String[messages.length];
    for (int r = 0; r < out.length; r++) {
      out[r] = r == group.rank() ? own : messages[r].text();
    }
    return out;
  }

  private Loans loansTo(int rank) {
    @Nullable Loans[] all = loans;
    if (all == null) {
      all = new @Nullable Loans[group.size()];
      loans = all;
    }
    Loans lent = all[rank];
    if (lent == null) {
      lent = new Loans();
      all[rank] = lent;
    }
    return lent;
  }

  private Key key(int phase) {
    Key key = new Key(group.id(), sequence, phase);
    List<Key> all = keys;
    if (all == null) {
      all = new ArrayList<>(3);
      keys = all;
    }
    all.add(key);
    return key;
  }

  boolean[] others() {
    boolean[] all = new boolean[group.size()];
    Arrays.fill(all, true);
    all[group.rank()] = false;
    return all;
  }

  private Payload acquired(Payload payload, int from) {
    if (!payload.acquire()) {
      throw new PeerFailedException(
          describe() + " cannot end: rank " + group.globalRank(from) + " gave up on it");
    }
    return payload;
  }

  /** Waits for one message of each rank in {@code from}. */
  private Message[] collect(Key key, boolean[] from) {
    int needed = 0;
    for (boolean b : from) {
      needed += b ? 1 : 0;
    }
    Inbox box = group.mailbox().inbox(key);
    int all = needed;
    box.expect(all, Thread.currentThread());
    waitUntil(() -> box.count() >= all, () -> absent(box, from), " did not arrive");
    Message[] bySource = new Message[from.length];
    for (Message m : box.messages()) {
      bySource[m.source()] = m;
    }
    return bySource;
  }

  private List<Integer> absent(Inbox box, boolean[] from) {
    boolean[] there = new boolean[from.length];
    box.messages().forEach(m -> there[m.source()] = true);
    List<Integer> out = new ArrayList<>();
    for (int r = 0; r < from.length; r++) {
      if (from[r] && !there[r]) {
        out.add(group.globalRank(r));
      }
    }
    return out;
  }

  /**
   * Waits for a transfer of a library, which has to be asked whether it is done. All ranks have
   * come; who has left since has done its part.
   */
  void await(Fabric.Transfer transfer) {
    for (int turn = 0; !transfer.isDone(); turn = Math.min(turn + 1, Spinning.YIELDS)) {
      Failure failure = group.mailbox().failure();
      if (failure != null) {
        throw HostGroup.peerFailed(describe(), failure);
      }
      group.checkAlive(this, wholeSequence());
      if (deadline.hasPassed()) {
        throw new OperationTimeoutException(
            describe()
                + " timed out after "
                + deadline.timeout().toMillis()
                + " ms: all ranks have come, and their data does not arrive");
      }
      if (turn < Spinning.YIELDS) {
        Spinning.yieldToOthers();
      } else {
        LockSupport.parkNanos(this, PAUSE_NANOS);
      }
      if (Thread.currentThread().isInterrupted()) {
        throw interrupted();
      }
    }
  }

  /** Waits until no peer reads this rank's memory any more. */
  void awaitLoans() {
    if (loans == null) {
      return;
    }
    waitUntil(
        () -> borrowers().isEmpty(), this::borrowers, " did not take this rank's data in time");
  }

  /** Global ranks that still read this rank's memory. */
  private List<Integer> borrowers() {
    List<Integer> out = null;
    @Nullable Loans[] all = Objects.requireNonNull(loans);
    for (int r = 0; r < all.length; r++) {
      Loans lent = all[r];
      if (lent != null && !lent.allBack()) {
        out = out == null ? new ArrayList<>() : out;
        out.add(group.globalRank(r));
      }
    }
    return out == null ? List.of() : out;
  }

  private void waitUntil(BooleanSupplier done, Supplier<List<Integer>> absent, String words) {
    if (!done.getAsBoolean() && !Spinning.until(done)) {
      waitUntil(done, absent, words, group);
    }
  }

  /**
   * Waits until something is so, as long as no rank fails or leaves that is waited for.
   *
   * @param absent the global ranks that are waited for
   * @param undone what they have not done, for the error when time is up
   * @param how asked again and again to wait
   */
  void waitUntil(BooleanSupplier done, Supplier<List<Integer>> absent, String undone, Pause how) {
    Mailbox mailbox = group.mailbox();
    Thread thread = Thread.currentThread();
    awaits(absent);
    mailbox.enroll(thread);
    try {
      for (int turn = 0; ; turn = Math.min(turn, Integer.MAX_VALUE - 1) + 1) {
        // Looked at before the messages: who has left by now has sent all it will.
        Set<Integer> left = mailbox.left();
        Failure failure = mailbox.failure();
        if (done.getAsBoolean()) {
          return;
        }
        if (failure != null) {
          throw HostGroup.peerFailed(describe(), failure);
        }
        group.checkAlive(this, wholeSequence());
        if (!left.isEmpty()) {
          checkLeft(left, absent.get());
        }
        long nanos = deadline.remainingNanos();
        if (nanos == 0) {
          throw timedOut(absent.get(), undone);
        }
        how.pause(this, nanos, turn);
        if (thread.isInterrupted()) {
          throw interrupted();
        }
      }
    } finally {
      mailbox.resign(thread);
      awaits(null);
    }
  }

  private DistributedException interrupted() {
    for (Round r = this; r != null; r = r.whole) {
      r.interrupted = true;
    }
    return new DistributedException(describe() + " was interrupted");
  }

  /** Whether its thread was interrupted, which ends it on this rank alone. */
  boolean wasInterrupted() {
    return interrupted;
  }

  private void awaits(@Nullable Supplier<List<Integer>> absent) {
    missing = absent;
    if (whole != null) {
      whole.awaits(absent);
    }
  }

  private void checkLeft(Set<Integer> left, List<Integer> absent) {
    List<Integer> gone = absent.stream().filter(left::contains).toList();
    if (!gone.isEmpty()) {
      throw new PeerFailedException(
          describe() + " cannot end: " + ranks(gone) + " left the world without taking part");
    }
  }

  private OperationTimeoutException timedOut(List<Integer> absent, String words) {
    return new OperationTimeoutException(
        describe()
            + " timed out after "
            + deadline.timeout().toMillis()
            + " ms: "
            + ranks(absent)
            + words);
  }

  private static String ranks(List<Integer> ranks) {
    return ranks.size() == 1 ? "rank " + ranks.get(0) : "ranks " + ranks;
  }

  /**
   * Gives back what arrived, then takes back what is lent; after this nobody uses the memory. In
   * this order, since two ranks that fail may each hold what the other waits for.
   */
  @Override
  public void close() {
    if (keys != null) {
      for (Key key : keys) {
        group.mailbox().close(key);
      }
    }
    if (loans != null) {
      for (Loans lent : loans) {
        if (lent != null && !lent.allBack()) {
          lent.revoke();
        }
      }
    }
  }
}
