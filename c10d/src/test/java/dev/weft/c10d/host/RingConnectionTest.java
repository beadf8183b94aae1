package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Both ends of a ring, by hand. */
@Timeout(60)
class RingConnectionTest {
  @TempDir private Path folder;
  private final List<Throwable> broken = new ArrayList<>();
  private final Mailbox[] mailboxes = {new Mailbox(), new Mailbox()};
  private final RingConnection[] ends = new RingConnection[2];

  private final class Owner implements RingConnection.Owner {
    @Override
    public void callPeer() {}

    @Override
    public void broken(Throwable cause) {
      broken.add(cause);
    }
  }

  @BeforeEach
  void open() throws IOException {
    SharedLayout layout = SharedSizes.ring(Map.of(SharedSizes.RING, "16384"));
    byte[] token = new byte[SharedSegment.TOKEN];
    Path file = folder.resolve("ring");
    SharedSegment.create(file, layout, token);
    for (int i = 0; i < 2; i++) {
      ends[i] =
          new RingConnection(
              1 - i, mailboxes[i], SharedSegment.map(file, layout, token), i, new Owner());
    }
  }

  @AfterEach
  void release() {
    for (RingConnection end : ends) {
      end.release();
    }
  }

  /** An empty message whose receiver will refuse it. */
  private void send(long group, Runnable refused) {
    Parcel.Outcome outcome =
        new Parcel.Outcome() {
          @Override
          public void taken() {
            throw new AssertionError("nobody takes it");
          }

          @Override
          public void refused(RuntimeException why) {
            refused.run();
          }
        };
    ends[0]
        .prepare(new Link.Letter(group, 0, 0, DType.FLOAT32, 0, new Piece(0, 0), outcome))
        .post();
  }

  /** P36: who leaves has written all it will; that may not be missed since another thread reads. */
  @Test
  void drainingWaitsForWhoReads() throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicBoolean second = new AtomicBoolean();
    AtomicBoolean seen = new AtomicBoolean();
    send(
        1,
        () -> {
          inside.countDown();
          try {
            goOn.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        });
    send(2, () -> second.set(true));
    ends[1].drain();
    mailboxes[1].closeGroup(1);
    Thread reader = new Thread(() -> assertThat(ends[0].progress()).isTrue());
    reader.start();
    inside.await();
    mailboxes[1].closeGroup(2);
    Thread drainer =
        new Thread(
            () -> {
              ends[0].drain();
              seen.set(second.get());
            });
    drainer.start();
    while (drainer.isAlive() && drainer.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    goOn.countDown();
    reader.join();
    drainer.join();
    assertThat(seen).isTrue();
    assertThat(broken).isEmpty();
  }

  /** Whichever thread reads it: not an error of what that thread waits for. */
  @Test
  void whatCannotBeReadEndsTheConnection() {
    ends[1].enqueue(ends[1].outgoing(Frame.about((byte) 99, 0)));
    boolean unused = ends[0].progress();
    assertThat(broken).singleElement().asString().contains("unknown type 99");
    ends[1].enqueue(ends[1].outgoing(Frame.about(Frame.WAKE, 0)));
    assertThat(ends[0].progress()).isFalse();
    assertThat(broken).hasSize(1);
  }
}
