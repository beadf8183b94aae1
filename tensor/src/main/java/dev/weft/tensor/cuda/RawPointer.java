package dev.weft.tensor.cuda;

import org.bytedeco.javacpp.Pointer;

/** A pointer of a given address that owns nothing; mutable, so that a hot path can reuse it. */
public final class RawPointer extends Pointer {
  /** Points to nothing. */
  public RawPointer() {
    super((Pointer) null);
  }

  /** Points to an address. */
  public RawPointer(long address) {
    super((Pointer) null);
    this.address = address;
  }

  /** Points to another address; returns itself. */
  public RawPointer at(long newAddress) {
    this.address = newAddress;
    return this;
  }
}
