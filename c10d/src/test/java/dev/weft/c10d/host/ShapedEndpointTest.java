package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LinkShape;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What becomes of messages over slow links when one of their two ranks leaves, or fails. */
@Timeout(60)
class ShapedEndpointTest {
  private static final LinkShape SLOW = new LinkShape(1, Duration.ofMillis(1), 1e9);
  private static final long BYTES = 1 << 16;
  private static final Key KEY = new Key(1, 1, 1);

  private final LocalEndpoint.Hub hub = new LocalEndpoint.Hub(2);
  private final LocalEndpoint receiver = new LocalEndpoint(1, hub);

  /** Lends memory over the slow way and waits until it may change again, as a collective does. */
  private static void lend(Endpoint sender) {
    long address = HostMemory.allocate(BYTES);
    Memory.fill(address, BYTES, (byte) 7);
    Loans loans = new Loans();
    sender.link(1).lend(KEY, 0, address, BYTES, loans);
    assertThat(loans.allBack()).isTrue(); // a copy is under way, and the sender's part is done
    loans.revoke();
    Memory.fill(address, BYTES, (byte) 0);
    HostMemory.free(address, BYTES);
  }

  /**
   * The receiver may take its time: it waits for another rank's message, too, before it reads. The
   * sender, which has all it needs, leaves meanwhile.
   */
  @Test
  void whatWasSentLastIsReadAfterItsSenderHasLeft() {
    long before = HostMemory.liveBytes();
    Endpoint sender = new ShapedEndpoint(new LocalEndpoint(0, hub), SLOW, 0, 2);
    lend(sender);
    sender.close();
    Payload late =
        Objects.requireNonNull(
            receiver.mailbox().inbox(KEY).messages().get(0).payload(), "what was sent");
    assertThat(late.acquire()).isTrue();
    assertThat(Memory.getByte(late.address())).isEqualTo((byte) 7);
    assertThat(Memory.getByte(late.address() + BYTES - 1)).isEqualTo((byte) 7);
    late.release();
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  @Test
  void nothingIsLeftOfWhatNobodyReads() {
    long before = HostMemory.liveBytes();
    Endpoint sender = new ShapedEndpoint(new LocalEndpoint(0, hub), SLOW, 0, 2);
    lend(sender);
    receiver.close();
    lend(sender); // arrives behind the end
    sender.close();
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  /** A rank whose messages cannot be delivered would wait in vain for answers. */
  @Test
  void whatCannotBeDeliveredEndsTheRanksOperations() throws InterruptedException {
    long before = HostMemory.liveBytes();
    LocalEndpoint inner = new LocalEndpoint(0, hub);
    Endpoint torn =
        new Endpoint() {
          @Override
          public Mailbox mailbox() {
            return inner.mailbox();
          }

          @Override
          public Link link(int globalRank) {
            return new Torn();
          }

          @Override
          public void close() {}
        };
    Endpoint sender = new ShapedEndpoint(torn, SLOW, 0, 2);
    sender.link(1).send(KEY, 0, null, null);
    lend(sender); // behind it
    while (inner.mailbox().failure() == null) {
      Thread.sleep(1);
    }
    assertThat(Objects.requireNonNull(inner.mailbox().failure()).describe())
        .contains("delivers over simulated slow links has failed")
        .contains("the cable is cut");
    lend(sender); // is dropped
    sender.close();
    assertThat(HostMemory.liveBytes()).isEqualTo(before);
  }

  private static final class Torn implements Link {
    @Override
    public void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline) {
      throw new IllegalStateException("the cable is cut");
    }

    @Override
    public void lend(Key key, int source, long address, long bytes, Loans loans) {
      throw new AssertionError("a copy is given");
    }

    @Override
    public void give(Key key, int source, long address, long bytes) {
      throw new AssertionError("the cable is cut already");
    }

    @Override
    public void wake() {}

    @Override
    public Posting prepare(Letter letter) {
      throw new AssertionError("no messages from rank to rank here");
    }
  }

  /** A letter is its sender's until its end is told: only what nobody reads is taken back. */
  @Test
  void aLoanIsTakenBackOnceOrRead() {
    Loans loans = new Loans();
    Loans.Loan read = loans.lend(0, 8);
    Loans.Loan unread = loans.lend(0, 8);
    assertThat(read.acquire()).isTrue();
    assertThat(read.takeBack()).isFalse();
    assertThat(unread.takeBack()).isTrue();
    assertThat(unread.acquire()).isFalse();
    assertThat(loans.allBack()).isFalse();
    read.release();
    assertThat(loans.allBack()).isTrue();
  }
}
