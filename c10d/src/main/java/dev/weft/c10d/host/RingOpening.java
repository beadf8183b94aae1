package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How two ranks come to have a {@link RingConnection}, when one of them sends the other its first
 * message: the lower rank makes the segment and tells where it is, the higher one maps it and
 * answers, and the lower one removes the file's name. Messages go over TCP until then. Thread-safe;
 * nothing here waits.
 */
final class RingOpening {
  private static final Logger LOG = LoggerFactory.getLogger(RingOpening.class);

  /**
   * What a rank's rings have in common.
   *
   * @param rank this rank
   * @param transport what is wanted
   * @param environment says where and how large
   */
  record Rings(int rank, HostTransport transport, Map<String, String> environment) {}

  private final Rings rings;
  private final int peer;
  private final Mailbox mailbox;
  private final Consumer<ByteBuffer> tell;
  private final Consumer<Throwable> broken;
  private boolean asked;
  private boolean ended;
  private @Nullable Path file;
  private @Nullable RingConnection offered;
  private volatile @Nullable RingConnection open;
  private volatile @Nullable String reason;

  /**
   * The way to a ring to one peer.
   *
   * @param tell sends the peer a frame over TCP
   * @param broken hears that the ring cannot be used any more, and nothing else in its place
   */
  RingOpening(
      Rings rings,
      int peer,
      Mailbox mailbox,
      Consumer<ByteBuffer> tell,
      Consumer<Throwable> broken) {
    this.rings = rings;
    this.peer = peer;
    this.mailbox = mailbox;
    this.tell = tell;
    this.broken = broken;
  }

  /** The ring, where both have it. */
  @Nullable RingConnection ring() {
    return open;
  }

  /**
   * Asks for a ring, unless that was done.
   *
   * @throws DistributedException if there can be none and it was required
   */
  void ask() {
    String why = reason;
    if (why != null && rings.transport() == HostTransport.SHM) {
      throw new DistributedException(
          "messages between ranks "
              + rings.rank()
              + " and "
              + peer
              + " cannot use shared memory, which "
              + HostTransport.VARIABLE
              + "=shm asks for: "
              + why);
    }
    if (rings.transport() == HostTransport.TCP) {
      return;
    }
    synchronized (this) {
      if (asked || ended) {
        return;
      }
      asked = true;
      if (rings.rank() > peer) {
        tell.accept(Frame.about(Frame.RING_WANTED, 0));
        return;
      }
      offer();
    }
  }

  /** A frame of the peer's. On the thread that reads the connection. */
  void frame(byte type, ByteBuffer header) {
    switch (type) {
      case Frame.RING_WANTED -> wanted();
      case Frame.RING_OFFER -> offered(text(header));
      case Frame.RING_ANSWER -> answered(text(header));
      default -> {
        RingConnection there = ring();
        if (there != null) {
          there.called();
        }
      }
    }
  }

  private static String text(ByteBuffer header) {
    return new String(Frame.readBytes(header), StandardCharsets.UTF_8);
  }

  private synchronized void wanted() {
    if (!asked && !ended) {
      asked = true;
      offer();
    }
  }

  private void offer() {
    Path made = SharedOffer.newFile(rings.environment());
    String text =
        SharedOffer.make(made, SharedSizes.ring(rings.environment()), rings.environment());
    if (SharedOffer.isOffer(text)) {
      file = made;
      try {
        offered = connection(SharedOffer.parse(text).map(rings.environment()), 0);
      } catch (IOException | RuntimeException e) {
        text = "cannot map " + made + ": " + e;
        removeName();
      }
    }
    if (offered == null) {
      refused(rings.rank(), text);
    }
    tell.accept(Frame.text(Frame.RING_OFFER, text));
  }

  private RingConnection connection(SharedSegment segment, int mine) {
    RingConnection.Owner owner =
        new RingConnection.Owner() {
          @Override
          public void callPeer() {
            tell.accept(Frame.about(Frame.RING_CALL, 0));
          }

          @Override
          public void broken(Throwable cause) {
            broken.accept(cause);
          }
        };
    return new RingConnection(peer, mailbox, segment, mine, owner);
  }

  private synchronized void offered(String text) {
    if (ended) {
      return;
    }
    asked = true;
    if (!SharedOffer.isOffer(text)) {
      refused(peer, text);
      return;
    }
    SharedOffer offer = SharedOffer.parse(text);
    String answer = "";
    RingConnection made = null;
    try {
      made = connection(offer.map(rings.environment()), 1);
    } catch (IOException | RuntimeException e) {
      answer = offer.whyNot(e, peer, rings.environment());
      refused(rings.rank(), answer);
    }
    // First the answer: the peer has to know of the ring before it is called.
    tell.accept(Frame.text(Frame.RING_ANSWER, answer));
    open = made;
  }

  private synchronized void answered(String text) {
    removeName();
    RingConnection made = offered;
    offered = null;
    if (made == null) {
      return;
    }
    if (text.isEmpty() && !ended) {
      open = made;
      return;
    }
    made.release();
    if (!ended) {
      refused(peer, text);
    }
  }

  private void removeName() {
    Path there = file;
    if (there != null) {
      file = null;
      SharedOffer.delete(there);
    }
  }

  private void refused(int who, String why) {
    reason = "rank " + who + " " + why;
    if (why.contains(SharedOffer.ELSEWHERE)) {
      LOG.debug("messages between ranks {} and {} use TCP: {}", rings.rank(), peer, reason);
    } else {
      LOG.warn(
          "messages between ranks {} and {} use TCP and no shared memory: {}",
          rings.rank(),
          peer,
          reason);
    }
  }

  /** The connection has ended: nothing is sent any more. */
  synchronized void end() {
    ended = true;
    removeName();
    RingConnection there = open;
    if (there != null) {
      there.end();
    }
  }

  /** Gives the memory back; nobody uses it any more. */
  synchronized void release() {
    end();
    RingConnection there = open == null ? offered : open;
    if (there != null) {
      there.release();
    }
  }
}
