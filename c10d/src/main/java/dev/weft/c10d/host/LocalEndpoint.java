package dev.weft.c10d.host;

import dev.weft.c10d.RankContext;
import org.jspecify.annotations.Nullable;

/** A rank whose peers are threads of this JVM: messages go straight into their mailboxes. */
final class LocalEndpoint implements Endpoint {
  /** The mailboxes of a world of threads. */
  static final class Hub {
    private final Mailbox[] mailboxes;
    private final LocalLink[] links;

    Hub(int size) {
      mailboxes = new Mailbox[size];
      links = new LocalLink[size];
      for (int r = 0; r < size; r++) {
        mailboxes[r] = new Mailbox();
        links[r] = new LocalLink(mailboxes[r]);
      }
    }
  }

  private final Hub hub;
  private final int rank;

  static LocalEndpoint of(RankContext context) {
    int n = context.worldSize();
    Hub hub = n == 1 ? new Hub(1) : context.shared(Hub.class, () -> new Hub(n));
    return new LocalEndpoint(context.rank(), hub);
  }

  LocalEndpoint(int rank, Hub hub) {
    this.rank = rank;
    this.hub = hub;
  }

  @Override
  public Mailbox mailbox() {
    return hub.mailboxes[rank];
  }

  @Override
  public Link link(int globalRank) {
    return hub.links[globalRank];
  }

  @Override
  public void close() {
    mailbox().close();
  }

  /** Puts messages into a mailbox of this JVM. */
  private static final class LocalLink implements Link {
    private final Mailbox target;

    LocalLink(Mailbox target) {
      this.target = target;
    }

    @Override
    public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
      Payload payload = inline == null ? null : new Payload.Inline(inline);
      target.deliver(key, new Message(source, signature, payload));
    }

    @Override
    public void lend(Key key, int source, long address, long bytes, Loans loans) {
      target.deliver(key, new Message(source, null, loans.lend(address, bytes)));
    }

    @Override
    public void give(Key key, int source, long address, long bytes) {
      target.deliver(key, new Message(source, null, new Payload.Owned(address, bytes)));
    }

    @Override
    public void wake() {
      target.wakeAll();
    }

    @Override
    public Attendance attend() {
      return Attendance.NOT_NEEDED;
    }

    @Override
    public Posting prepare(Letter letter) {
      Loans.Loan payload = new Loans().lend(letter.piece().address(), letter.piece().bytes());
      Parcel parcel =
          new Parcel(
              letter.group(),
              letter.source(),
              letter.tag(),
              letter.dtype(),
              letter.numel(),
              payload,
              letter.outcome());
      return new Posting() {
        @Override
        public void post() {
          target.parcels().deliver(parcel);
        }

        @Override
        public boolean cancel() {
          return payload.takeBack();
        }
      };
    }
  }
}
