package dev.weft.c10d.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a client says when the server is late, wrong, stuck or gone. */
class TcpStoreClientTest {
  private static final Duration SHORT = Duration.ofMillis(300);

  private final ExecutorService others = Executors.newCachedThreadPool();

  @AfterEach
  void stop() {
    others.shutdownNow();
  }

  private static TcpStoreBuilder client(int port) {
    return TcpStore.at("127.0.0.1", port);
  }

  private static int unusedPort() throws Exception {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** P46: a client may come before its server. */
  @Test
  void waitsForAServerThatComesLater() throws Exception {
    int port = unusedPort();
    var client = others.submit(() -> client(port).timeout(Duration.ofSeconds(20)).open());
    assertThatThrownBy(() -> client.get(500, TimeUnit.MILLISECONDS))
        .isInstanceOf(java.util.concurrent.TimeoutException.class);
    try (var server = client(port).server(true).open();
        var connected = client.get(10, TimeUnit.SECONDS)) {
      server.set("k", "v");
      assertThat(connected.getString("k")).isEqualTo("v");
    }
  }

  /** P46 */
  @Test
  void givesUpAfterItsTimeoutAndSaysWhere() throws Exception {
    int port = unusedPort();
    long start = System.nanoTime();
    assertThatThrownBy(() -> client(port).timeout(SHORT).open())
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("127.0.0.1:" + port)
        .hasMessageContaining("300 ms")
        .hasMessageContaining("refused");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, Duration.ofSeconds(5));
  }

  /** P47 */
  @Test
  void aNameThatDoesNotResolveIsNamed() {
    assertThatThrownBy(() -> TcpStore.at("no-such-host.invalid", 29500).timeout(SHORT).open())
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("'no-such-host.invalid' does not resolve");
  }

  @Test
  void aServerThatIsNoStoreIsToldFromNoServer() throws Exception {
    try (var http = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      others.submit(
          () -> {
            while (true) {
              try (var socket = http.accept()) {
                // What is not read would reset the connection and take the answer with it.
                byte[] unused = socket.getInputStream().readNBytes(10);
                socket
                    .getOutputStream()
                    .write(
                        "HTTP/1.1 400 Bad Request\r\n\r\n"
                            .getBytes(java.nio.charset.StandardCharsets.US_ASCII));
              }
            }
          });
      assertThatThrownBy(() -> client(http.getLocalPort()).timeout(SHORT).open())
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("not a store server");
    }
  }

  /** A listener whose process is stopped accepts connections and never answers. */
  @Test
  void aServerThatNeverAnswersTimesOut() throws Exception {
    try (var silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      assertThatThrownBy(() -> client(silent.getLocalPort()).timeout(SHORT).open())
          .isInstanceOf(StoreTimeoutException.class)
          .hasMessageContaining("no answer")
          .hasMessageContaining("127.0.0.1:" + silent.getLocalPort());
    }
  }

  /**
   * A server whose process is stopped after the handshake: neither small nor large requests may
   * hang.
   */
  @Test
  void aServerThatGetsStuckTimesOut() throws Exception {
    try (var stuck = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      others.submit(
          () -> {
            var kept = new ArrayList<Socket>();
            while (true) {
              var socket = stuck.accept();
              kept.add(socket);
              socket.getInputStream().readNBytes(6);
              socket.getOutputStream().write(socket.getInputStream().readNBytes(4));
            }
          });
      try (var store = client(stuck.getLocalPort()).timeout(SHORT).waitForWorkers(false).open()) {
        for (int size : new int[] {1, 8 << 20}) {
          assertThatThrownBy(() -> store.set("k", new byte[size]))
              .isInstanceOf(StoreTimeoutException.class)
              .hasMessageContaining("set 'k'")
              .hasMessageContaining("300 ms");
        }
      }
    }
  }

  /** P54: whoever talks to a dead store hears that the store is dead, not that a peer is. */
  @Test
  void aLostServerIsReportedAsThat() throws Exception {
    var server = client(0).server(true).open();
    try (var client = client(server.port()).timeout(Duration.ofSeconds(20)).open()) {
      var waiter =
          others.submit(
              () -> {
                client.waitFor(List.of("never"));
                return true;
              });
      assertThatThrownBy(() -> waiter.get(200, TimeUnit.MILLISECONDS))
          .isInstanceOf(java.util.concurrent.TimeoutException.class);
      server.close();
      assertThatThrownBy(() -> waiter.get(5, TimeUnit.SECONDS))
          .hasCauseInstanceOf(StoreException.class)
          .hasMessageContaining("store server at 127.0.0.1:" + server.port() + " is gone")
          .hasMessageContaining("'never'");
      assertThatThrownBy(() -> client.set("k", "v"))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("is gone");
    }
  }

  @Test
  void sizesAreCheckedBeforeAnythingIsSent() {
    try (var store = StoreKind.tcp()) {
      String key = "k".repeat(8192);
      assertThatThrownBy(() -> store.set(key, "v"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("8193 bytes")
          .hasMessageContaining("at most 8192");
      assertThatThrownBy(() -> store.set("big", new byte[(8 << 20) + 1]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("'big'")
          .hasMessageContaining("at most 8388608");
      assertThatThrownBy(() -> store.check(java.util.Collections.nCopies(131_073, "k")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("131073 keys");
      store.set(key.substring(1), new byte[8 << 20]);
      assertThat(store.get(key.substring(1))).hasSize(8 << 20);
      assertThat(store.numKeys()).isEqualTo(1);
    }
  }

  /** P46: the store says how many of its workers came. */
  @Test
  void theServerCountsItsWorkers() {
    assertThatThrownBy(() -> client(0).server(true).worldSize(3).timeout(SHORT).open())
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("1 of 3 workers joined")
        .hasMessageContaining("300 ms");
  }

  @Test
  void badArgumentsAreNamed() {
    assertThatThrownBy(() -> client(70_000))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("port is 70000");
    assertThatThrownBy(() -> client(0).open())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("port is 0 for a client");
    assertThatThrownBy(() -> TcpStore.at(" ", 1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> client(1).worldSize(0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("worldSize is 0");
    assertThatThrownBy(() -> client(0).server(true).bind("10.0.0.0/99").open())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("WEFT_STORE_BIND is '10.0.0.0/99'");
  }

  /**
   * P47: a name, an address, an interface or a network; loopback only where the master address says
   * so.
   */
  @Test
  void listensWhereItShould() throws Exception {
    assertThat(BindAddress.choose(null, "127.0.0.1", 1).getAddress().isLoopbackAddress()).isTrue();
    assertThat(BindAddress.choose(null, "localhost", 1).getAddress().isLoopbackAddress()).isTrue();
    assertThat(BindAddress.choose(null, "10.1.2.3", 1).getAddress().isAnyLocalAddress()).isTrue();
    assertThat(
            BindAddress.choose(null, InetAddress.getLocalHost().getHostName() + ".example", 1)
                .getAddress()
                .isAnyLocalAddress())
        .isTrue();
    assertThat(BindAddress.choose("127.0.0.0/8", "10.1.2.3", 1).getAddress().isLoopbackAddress())
        .isTrue();
    assertThat(BindAddress.choose("lo", "10.1.2.3", 1).getAddress().isLoopbackAddress()).isTrue();
    assertThat(BindAddress.choose("0.0.0.0", "localhost", 1).getAddress().isAnyLocalAddress())
        .isTrue();
  }

  /** P47: what others can reach this rank by is the address that reached the store. */
  @Test
  void knowsTheAddressByWhichItReachedTheServer() {
    try (var store = StoreKind.tcp()) {
      assertThat(new PrefixStore("p", store).localAddress())
          .hasValueSatisfying(
              address -> assertThat(address.getHostAddress()).isEqualTo("127.0.0.1"));
    }
    assertThat(new HashStore().localAddress()).isEmpty();
  }
}
