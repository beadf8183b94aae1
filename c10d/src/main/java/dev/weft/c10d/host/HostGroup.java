package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.PeerFailedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A group as this backend sees it: its members, the ways to them, and whether it still works. */
final class HostGroup implements Round.Pause {
  private final GroupContext context;
  private final long id;
  private final int[] ranks;
  private final Endpoint endpoint;
  private final @Nullable HostGroup whole;
  private volatile @Nullable Throwable aborted;

  HostGroup(GroupContext context, Endpoint endpoint) {
    this(context, endpoint, null);
  }

  private HostGroup(GroupContext context, Endpoint endpoint, @Nullable HostGroup whole) {
    this.whole = whole;
    this.context = context;
    this.endpoint = endpoint;
    this.ranks = context.ranks().stream().mapToInt(r -> r).toArray();
    this.id = idOf(context.name());
  }

  /**
   * Some of its members, this rank among them, that do a part of the group's work; it ends with the
   * group.
   *
   * @param name no other part's
   * @param members group ranks, ascending
   */
  HostGroup part(String name, List<Integer> members) {
    GroupContext part =
        new GroupContext(
            context.rankContext(),
            context.name() + "/" + name,
            context.description(),
            members.stream().map(this::globalRank).toList(),
            members.indexOf(rank()),
            context.timeout(),
            context.options());
    return new HostGroup(part, endpoint, this);
  }

  /** The same number on all members, as the name is. */
  private static long idOf(String name) {
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-256").digest(name.getBytes(StandardCharsets.UTF_8));
      return ByteBuffer.wrap(hash).getLong();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  GroupContext context() {
    return context;
  }

  long id() {
    return id;
  }

  int size() {
    return ranks.length;
  }

  /** This rank's position. */
  int rank() {
    return context.groupRank();
  }

  int globalRank(int groupRank) {
    return ranks[groupRank];
  }

  int[] globalRanks() {
    return ranks;
  }

  Mailbox mailbox() {
    return endpoint.mailbox();
  }

  Link link(int groupRank) {
    return endpoint.link(ranks[groupRank]);
  }

  @Override
  public void pause(Round blocker, long nanos, int turn) {
    endpoint.pause(blocker, nanos, turn);
  }

  String describe() {
    return context.describe();
  }

  /** Ends what is under way and to come. */
  void abort(Throwable cause) {
    if (aborted == null) {
      aborted = cause;
    }
    mailbox().wakeAll();
  }

  /** Tells the others that this rank has given a collective up, which ends them on all. */
  void giveUp(long sequence, String why) {
    byte[] text = why.getBytes(StandardCharsets.UTF_8);
    Key key = new Key(id, sequence, Key.GIVEN_UP);
    for (int r = 0; r < size(); r++) {
      if (r != rank()) {
        link(r).send(key, rank(), null, text);
      }
    }
  }

  /** Whether {@link #checkAlive} throws for a new operation. */
  boolean hasEnded() {
    HostGroup all = whole == null ? this : whole;
    return all.aborted != null || mailbox().givenUp(all.id) != null;
  }

  /**
   * Throws if the group was aborted, or another rank has given up this operation or one before:
   * what came before that one can still end.
   *
   * @param what cannot end then, in words
   * @param sequence the operation's number in the whole group
   */
  void checkAlive(Supplier<String> what, long sequence) {
    Throwable cause = whole == null ? aborted : whole.aborted;
    if (cause != null) {
      throw new DistributedException(
          what.get() + " cannot end: the group was aborted: " + cause, cause);
    }
    Mailbox.GivenUp gone = mailbox().givenUp(whole == null ? id : whole.id);
    if (gone != null && sequence >= gone.sequence()) {
      throw new PeerFailedException(
          what.get() + " cannot end: " + gone.why().getMessage(), gone.why());
    }
  }

  /** The error of an operation that another rank's end stops. */
  static PeerFailedException peerFailed(String what, Failure failure) {
    return new PeerFailedException(what + " cannot end: " + failure.describe(), failure.cause());
  }
}
