package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * A secret that a store's server and clients share, and show each other without sending it: each
 * side draws a nonce, and proves that it knows the secret by the HMAC-SHA256 of both. Immutable.
 *
 * <p>On the wire, where and only where the server has a secret: after the four bytes that open a
 * connection the client sends {@link #HELLO} and its nonce. The server answers with its own. The
 * client sends its proof; the server answers {@link #ACCEPTED} and its own proof, or {@link
 * #REFUSED} and closes. Then all goes on as without a secret. A client that does not begin so gets
 * the word {@link #ASKED} and is closed.
 */
final class SharedSecret {
  static final String VARIABLE = "WEFT_STORE_SECRET";

  /** Follows the queries of the protocol. */
  static final int HELLO = 19;

  static final int ACCEPTED = 1;
  static final int REFUSED = 0;
  static final int SIZE = 32;

  /** What a client that brings no secret gets in place of an answer. */
  static final int ASKED = 0x5EC4E700;

  private static final String ALGORITHM = "HmacSHA256";
  private static final SecureRandom RANDOM = new SecureRandom();

  private final SecretKeySpec key;

  private SharedSecret(String secret) {
    key = new SecretKeySpec(secret.getBytes(UTF_8), ALGORITHM);
  }

  /** The secret of a text; none if it is null or empty. */
  static Optional<SharedSecret> of(@Nullable String secret) {
    return secret == null || secret.isEmpty()
        ? Optional.empty()
        : Optional.of(new SharedSecret(secret));
  }

  static byte[] nonce() {
    byte[] nonce = new byte[SIZE];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  byte[] clientProof(byte[] clientNonce, byte[] serverNonce) {
    return proof("weft-store client", clientNonce, serverNonce);
  }

  byte[] serverProof(byte[] clientNonce, byte[] serverNonce) {
    return proof("weft-store server", clientNonce, serverNonce);
  }

  private byte[] proof(String side, byte[] clientNonce, byte[] serverNonce) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      mac.update(side.getBytes(UTF_8));
      mac.update(clientNonce);
      return mac.doFinal(serverNonce);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this JVM has no " + ALGORITHM, e);
    }
  }

  /** Compares in a time that does not depend on where they differ. */
  static boolean same(byte[] a, byte[] b) {
    return MessageDigest.isEqual(a, b);
  }

  @Override
  public String toString() {
    return "a shared secret";
  }
}
