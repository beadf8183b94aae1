package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.io.BaseEncoding;
import io.netty.util.internal.PlatformDependent;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The server among many clients, strangers and clients that misbehave. */
class TcpStoreServerTest {
  private static final byte[] HANDSHAKE = BaseEncoding.base16().lowerCase().decode("00cef7853c");

  private final TcpStore store = StoreKind.tcp();

  @AfterEach
  void close() {
    store.close();
  }

  private Socket connect() throws IOException {
    var socket = new Socket(InetAddress.getLoopbackAddress(), store.port());
    socket.setSoTimeout(5000);
    return socket;
  }

  /** Lengths, counts and queries that no client may send, in hexadecimal, after the handshake. */
  @ParameterizedTest(name = "{0}")
  @CsvSource({
    "unknown query, 13",
    "second handshake, 00cef7853c",
    "key of 8193 bytes, 030120000000000000",
    "key of negative length, 03ffffffffffffffff",
    "value of 8 MiB + 1, 0101000000000000006b0100800000000000",
    "value of 2^63 - 1 bytes, 0101000000000000006bffffffffffffff7f",
    "count of 131073, 050100020000000000",
    "negative count, 0bffffffffffffffff",
    "adding to text, 04040000000000000074657874 0100000000000000",
    "barrier on text, 12040000000000000074657874 0200000000000000",
  })
  void endsAConnectionThatBreaksTheRulesAndNoOther(String what, String hex) throws Exception {
    try (var well = connect();
        var ill = connect()) {
      well.getOutputStream().write(HANDSHAKE);
      ill.getOutputStream().write(HANDSHAKE);
      // SET "text" "abc", so that two of the cases find text
      ill.getOutputStream()
          .write(
              BaseEncoding.base16()
                  .lowerCase()
                  .decode("01040000000000000074657874" + "0300000000000000616263"));
      ill.getOutputStream().write(BaseEncoding.base16().lowerCase().decode(hex.replace(" ", "")));
      assertThat(ill.getInputStream().read()).as(what).isEqualTo(-1);

      well.getOutputStream().write(new byte[] {13, 1, 2, 3, 4});
      assertThat(well.getInputStream().readNBytes(4)).containsExactly(1, 2, 3, 4);
    }
    assertThat(store.check(List.of("untouched"))).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"GET / HTTP/1.1", "00cef78500", "010100000000000000", "ffffffffffffffffffff"})
  void closesOnStrangers(String bytes) throws Exception {
    byte[] sent =
        bytes.startsWith("GET")
            ? bytes.getBytes(UTF_8)
            : BaseEncoding.base16().lowerCase().decode(bytes);
    try (var socket = connect()) {
      socket.getOutputStream().write(sent);
      // a stranger whose request is not complete is asked nothing: it ends the connection itself
      socket.shutdownOutput();
      assertThat(socket.getInputStream().read()).isEqualTo(-1);
    }
    store.set("k", "still serving");
    assertThat(store.getString("k")).isEqualTo("still serving");
  }

  @Test
  void halfAFrameChangesNothing() throws Exception {
    try (var socket = connect()) {
      socket.getOutputStream().write(HANDSHAKE);
      socket
          .getOutputStream()
          .write(BaseEncoding.base16().lowerCase().decode("010400000000000000" + "2f68616c"));
    }
    assertThat(store.check(List.of("hal", "half"))).isFalse();
  }

  /**
   * A client that asks for megabytes and never reads must not stop the others, or fill the memory.
   */
  @Test
  void aSlowReaderHoldsUpNobody() throws Exception {
    store.set("big", new byte[4 << 20]);
    try (var slow = connect()) {
      slow.getOutputStream().write(HANDSHAKE);
      byte[] get = BaseEncoding.base16().lowerCase().decode("0304000000000000002f626967");
      var requests = ByteBuffer.allocate(get.length * 2000);
      for (int i = 0; i < 2000; i++) {
        requests.put(get);
      }
      long before = PlatformDependent.usedDirectMemory();
      slow.getOutputStream().write(requests.array());
      long start = System.nanoTime();
      for (int i = 0; i < 100; i++) {
        store.add("n", 1);
      }
      assertThat(PlatformDependent.usedDirectMemory())
          .as("bytes copied for a client that does not read")
          .isBetween(1L, before + (64 << 20));
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(5));
      // and what it reads at last is whole, also behind where the server had stopped
      var in = new DataInputStream(new BufferedInputStream(slow.getInputStream(), 1 << 16));
      for (int i = 0; i < 300; i++) {
        assertThat(Long.reverseBytes(in.readLong())).isEqualTo(4 << 20);
        in.skipNBytes(4 << 20);
      }
    }
  }

  /**
   * One request may ask for more than fits into memory: the answer is not made before it is read.
   */
  @Test
  void anAnswerOfGigabytesIsNotHeldInMemory() throws Exception {
    store.set("big", new byte[8 << 20]);
    try (var slow = connect()) {
      long before = PlatformDependent.usedDirectMemory();
      var request = ByteBuffer.allocate(1 << 20).order(ByteOrder.LITTLE_ENDIAN).put(HANDSHAKE);
      request.put(Query.MULTI_GET.code()).putLong(1000);
      for (int i = 0; i < 1000; i++) {
        request.putLong(4).put("/big".getBytes(UTF_8));
      }
      slow.getOutputStream().write(request.array(), 0, request.position());
      var in = new DataInputStream(slow.getInputStream());
      for (int i = 0; i < 20; i++) {
        assertThat(Long.reverseBytes(in.readLong())).isEqualTo(8 << 20);
        in.skipNBytes(8 << 20);
      }
      assertThat(PlatformDependent.usedDirectMemory()).isBetween(1L, before + (64 << 20));
    }
  }

  @Test
  void answersPipelinedRequestsInOrder() throws Exception {
    try (var socket = connect()) {
      var out = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN).put(HANDSHAKE);
      for (int i = 0; i < 100; i++) {
        out.put((byte) 4).putLong(1).put((byte) 'n').putLong(1);
      }
      socket.getOutputStream().write(out.array(), 0, out.position());
      var in = new DataInputStream(socket.getInputStream());
      for (int i = 1; i <= 100; i++) {
        assertThat(Long.reverseBytes(in.readLong())).isEqualTo(i);
      }
    }
  }

  @Test
  void aClosedClientNoLongerTakesElementsOfAQueue() throws Exception {
    try (var socket = connect()) {
      socket.getOutputStream().write(HANDSHAKE);
      socket
          .getOutputStream()
          .write(
              BaseEncoding.base16()
                  .lowerCase()
                  .decode("060100000000000000" + "02000000000000002f71" + "0d01000000"));
      socket.getInputStream().readNBytes(4); // the ping's answer: the wait has been noted
    }
    var popped = Executors.newSingleThreadExecutor().submit(() -> store.queuePop("q"));
    store.queuePush("q", "x");
    assertThat(popped.get(5, TimeUnit.SECONDS)).isEqualTo("x".getBytes(UTF_8));
  }

  /** Thousands of clients share the one event loop. */
  @Test
  @Timeout(180)
  void twoThousandClientsSetAndMeetAtABarrier() throws Exception {
    int clients = 2_000;
    var pool = Executors.newFixedThreadPool(clients);
    var connected = new CountDownLatch(clients);
    try {
      var arrived = new ArrayList<Future<Boolean>>();
      for (int i = 0; i < clients; i++) {
        int number = i;
        arrived.add(
            pool.submit(
                () -> {
                  try (var client =
                      TcpStore.at("127.0.0.1", store.port())
                          .worldSize(clients)
                          .timeout(Duration.ofSeconds(150))
                          .open()) {
                    connected.countDown();
                    client.set("rank/" + number, "here");
                    client.barrier("all", clients);
                    return client.check(List.of("rank/" + (number + 1) % clients));
                  }
                }));
      }
      for (Future<Boolean> one : arrived) {
        assertThat(one.get(160, TimeUnit.SECONDS)).isTrue();
      }
      assertThat(connected.getCount()).isZero();
      assertThat(store.getString("all")).isEqualTo("2000");
    } finally {
      pool.shutdownNow();
    }
  }

  @Test
  void clientsOfOneProcessMayShareAServer() {
    try (var one = TcpStore.at("localhost", 0).server(true).multiTenant(true).open();
        var two = TcpStore.at("localhost", one.port()).server(true).multiTenant(true).open()) {
      one.set("k", "v");
      assertThat(two.getString("k")).isEqualTo("v");
      one.close();
      assertThat(two.getString("k")).isEqualTo("v");
    }
  }

  /** P45: a port in use is reported with its address, and port 0 needs no search for a free one. */
  @Test
  void aPortInUseIsReportedWithItsAddress() {
    assertThatThrownBy(() -> TcpStore.at("127.0.0.1", store.port()).server(true).open())
        .isInstanceOf(dev.weft.c10d.StoreException.class)
        .hasMessageContaining("127.0.0.1:" + store.port())
        .hasMessageContaining("in use");
    try (var first = TcpStore.at("127.0.0.1", 0).server(true).open();
        var second = TcpStore.at("127.0.0.1", 0).server(true).open()) {
      assertThat(first.port()).isNotEqualTo(second.port());
    }
  }
}
