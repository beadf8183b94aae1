package dev.weft.c10d.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.StoreException;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A server with a shared secret, and clients with and without it. */
@Timeout(30)
class StoreSecretTest {
  private static final String SECRET = "correct horse battery staple";

  private static TcpStore server(String secret) {
    return TcpStore.at("127.0.0.1", 0).server(true).secret(secret).open();
  }

  private static TcpStore client(int port, String secret) {
    return TcpStore.at("127.0.0.1", port).secret(secret).timeout(Duration.ofSeconds(20)).open();
  }

  @Test
  void whoKnowsTheSecretIsLetIn() {
    try (var server = server(SECRET);
        var client = client(server.port(), SECRET)) {
      client.set("k", "v".repeat(100_000));
      assertThat(server.getString("k")).hasSize(100_000);
      assertThat(server.add("n", 2)).isEqualTo(2);
      assertThat(client.add("n", 3)).isEqualTo(5);
    }
  }

  @Test
  void aWrongSecretIsRefusedAtOnce() {
    try (var server = server(SECRET)) {
      assertThatThrownBy(() -> client(server.port(), "wrong"))
          .isExactlyInstanceOf(StoreException.class)
          .hasMessageContaining("127.0.0.1:" + server.port())
          .hasMessageContaining("refused the shared secret")
          .hasMessageContaining("WEFT_STORE_SECRET")
          .hasMessageNotContaining("wrong")
          .hasMessageNotContaining(SECRET);
      assertThat(server.numKeys()).isZero();
    }
  }

  @Test
  void aMissingSecretIsNamed() {
    try (var server = server(SECRET)) {
      assertThatThrownBy(() -> client(server.port(), ""))
          .isExactlyInstanceOf(StoreException.class)
          .hasMessageContaining("asks for a shared secret, and WEFT_STORE_SECRET is not set here");
    }
  }

  @Test
  void aServerWithoutTheSecretIsNamed() {
    try (var server = server("")) {
      assertThatThrownBy(() -> client(server.port(), SECRET))
          .isExactlyInstanceOf(StoreException.class)
          .hasMessageContaining(
              "WEFT_STORE_SECRET is set here, and the server was started without");
    }
  }

  /** A client that goes on as if it had been let in is not heard. */
  @Test
  void requestsBehindARefusedProofAreIgnored() throws IOException {
    try (var server = server(SECRET);
        var socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
      socket.setSoTimeout(10_000);
      var out = socket.getOutputStream();
      var in = new DataInputStream(socket.getInputStream());
      out.write(new byte[] {0, (byte) 0xce, (byte) 0xf7, (byte) 0x85, 0x3c, SharedSecret.HELLO});
      out.write(new byte[SharedSecret.SIZE]);
      assertThat(in.readNBytes(SharedSecret.SIZE)).hasSize(SharedSecret.SIZE);
      out.write(new byte[SharedSecret.SIZE]); // not the proof
      out.write(new byte[] {1, 2, 0, 0, 0, 0, 0, 0, 0, '/', 'k', 1, 0, 0, 0, 0, 0, 0, 0, 'v'});
      assertThat(in.readByte()).isEqualTo((byte) SharedSecret.REFUSED);
      assertThat(in.read()).isEqualTo(-1);
      assertThat(server.numKeys()).isZero();
    }
  }

  /** What an eavesdropper, or a server that only pretends, gets to see. */
  @Test
  void theSecretIsNeverSent() throws Exception {
    try (var pretender = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      var seen = new java.io.ByteArrayOutputStream();
      var serving =
          new Thread(
              () -> {
                try (var socket = pretender.accept()) {
                  seen.writeBytes(socket.getInputStream().readNBytes(6 + SharedSecret.SIZE));
                  socket.getOutputStream().write(new byte[SharedSecret.SIZE]);
                  seen.writeBytes(socket.getInputStream().readNBytes(SharedSecret.SIZE));
                  socket.getOutputStream().write(SharedSecret.ACCEPTED);
                  socket.getOutputStream().write(new byte[SharedSecret.SIZE]);
                  socket.getInputStream().readAllBytes();
                } catch (IOException e) {
                  throw new java.io.UncheckedIOException(e);
                }
              });
      serving.start();
      assertThatThrownBy(() -> client(pretender.getLocalPort(), SECRET))
          .hasMessageContaining("does not know the shared secret itself");
      serving.join();
      assertThat(seen.toByteArray()).hasSize(6 + 2 * SharedSecret.SIZE);
      assertThat(seen.toString(StandardCharsets.ISO_8859_1)).doesNotContain(SECRET);
    }
  }
}
