package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/**
 * One connection to a store server. Used by one thread at a time; {@link #close} may come from
 * another, and so may an interrupt: both end a blocked call with an {@link IOException}, as does
 * the passing of a deadline ({@link SocketTimeoutException}).
 */
final class Connection implements AutoCloseable {
  private static final int MAX_REPLY_VALUE = Table.MAX_GROWN_VALUE;

  /** What a socket buffer takes for sure when nothing is under way. */
  private static final int WRITTEN_AT_ONCE = 16 << 10;

  private final SocketChannel channel;
  private final DataInputStream in;

  private Connection(SocketChannel channel) throws IOException {
    this.channel = channel;
    this.in =
        new DataInputStream(new BufferedInputStream(channel.socket().getInputStream(), 1 << 13));
  }

  /**
   * Connects and shakes hands.
   *
   * @param secret what the server is to know, and asks for
   * @throws SecretException if it does not, or has another
   */
  static Connection open(
      InetSocketAddress address, Optional<SharedSecret> secret, Deadline deadline)
      throws IOException {
    SocketChannel channel = SocketChannel.open();
    boolean done = false;
    try {
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
      channel.socket().connect(address, Math.max(1, deadline.remainingMillis()));
      var connection = new Connection(channel);
      connection.shakeHands(secret, deadline);
      done = true;
      return connection;
    } finally {
      if (!done) {
        channel.close();
      }
    }
  }

  private void shakeHands(Optional<SharedSecret> secret, Deadline deadline) throws IOException {
    int nonce = ThreadLocalRandom.current().nextInt();
    if (nonce == SharedSecret.ASKED) {
      nonce++;
    }
    var opening = WireRequest.of(Query.VALIDATE).word(Query.MAGIC);
    if (secret.isPresent()) {
      proveSecret(secret.get(), opening, deadline);
      opening = new WireRequest();
    }
    send(opening.query(Query.PING).word(nonce), deadline);
    int answer = readWord(deadline);
    if (answer == SharedSecret.ASKED) {
      throw new SecretException(
          "it asks for a shared secret, and "
              + SharedSecret.VARIABLE
              + " is not set here; expected the one that the server was started with");
    }
    if (answer != nonce) {
      throw new NotAStoreException();
    }
  }

  private void proveSecret(SharedSecret secret, WireRequest opening, Deadline deadline)
      throws IOException {
    byte[] clientNonce = SharedSecret.nonce();
    send(opening.raw(SharedSecret.HELLO, clientNonce), deadline);
    byte[] serverNonce;
    try {
      serverNonce = readProof(deadline);
    } catch (SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      throw new SecretException(
          "it closed the connection when it was asked to prove the shared secret: "
              + SharedSecret.VARIABLE
              + " is set here, and the server was started without it",
          e);
    }
    byte[] proof = secret.clientProof(clientNonce, serverNonce);
    send(new WireRequest().raw(proof), deadline);
    if (readByte(deadline) != SharedSecret.ACCEPTED) {
      throw new SecretException(
          "it refused the shared secret: "
              + SharedSecret.VARIABLE
              + " has one value here and another where the server was started");
    }
    if (!SharedSecret.same(readProof(deadline), secret.serverProof(clientNonce, serverNonce))) {
      throw new SecretException("it does not know the shared secret itself; it is an impostor");
    }
  }

  private byte[] readProof(Deadline deadline) throws IOException {
    byte[] bytes = within(deadline).readNBytes(SharedSecret.SIZE);
    if (bytes.length < SharedSecret.SIZE) {
      throw new EOFException();
    }
    return bytes;
  }

  /** The server and this client do not share the secret, or only one of them has one. */
  static final class SecretException extends IOException {
    private static final long serialVersionUID = 1L;

    SecretException(String message) {
      super(message);
    }

    SecretException(String message, Throwable cause) {
      super(message, cause);
    }
  }

  /** Whoever listens there does not speak the protocol. */
  static final class NotAStoreException extends IOException {
    private static final long serialVersionUID = 1L;

    NotAStoreException() {
      super("whoever listens there is not a store server");
    }
  }

  void send(WireRequest request, Deadline deadline) throws IOException {
    ByteBuffer bytes = request.finish();
    if (bytes.remaining() <= WRITTEN_AT_ONCE) {
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
      return;
    }
    // A blocking write knows no timeout, and a server that was stopped never reads.
    channel.configureBlocking(false);
    try (var selector = Selector.open()) {
      channel.register(selector, SelectionKey.OP_WRITE);
      while (bytes.hasRemaining()) {
        if (channel.write(bytes) == 0) {
          if (deadline.hasPassed()) {
            throw new SocketTimeoutException("the server takes no more bytes");
          }
          selector.select(Math.max(1, deadline.remainingMillis()));
          selector.selectedKeys().clear();
          if (Thread.currentThread().isInterrupted()) {
            channel.close();
          }
        }
      }
    }
    channel.configureBlocking(true);
  }

  private InputStream within(Deadline deadline) throws IOException {
    channel.socket().setSoTimeout(Math.max(1, deadline.remainingMillis()));
    return in;
  }

  byte readByte(Deadline deadline) throws IOException {
    within(deadline);
    return in.readByte();
  }

  int readWord(Deadline deadline) throws IOException {
    within(deadline);
    return Integer.reverseBytes(in.readInt());
  }

  long readNumber(Deadline deadline) throws IOException {
    within(deadline);
    return Long.reverseBytes(in.readLong());
  }

  byte[] readValue(Deadline deadline) throws IOException {
    long length = readNumber(deadline);
    if (length < 0 || length > MAX_REPLY_VALUE) {
      throw new IOException("the server announced a value of " + length + " bytes");
    }
    byte[] value = within(deadline).readNBytes((int) length);
    if (value.length < length) {
      throw new EOFException();
    }
    return value;
  }

  /** The address of this end. */
  InetAddress localAddress() {
    return channel.socket().getLocalAddress();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
