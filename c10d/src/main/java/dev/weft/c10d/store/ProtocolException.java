package dev.weft.c10d.store;

/**
 * What a client sent is not what the protocol allows: its connection ends, nothing else happens.
 */
final class ProtocolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ProtocolException(String message) {
    super(message);
  }
}
