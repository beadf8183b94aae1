package dev.weft.c10d.host;

import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.HostMemory;
import java.util.ArrayList;
import java.util.List;

/**
 * Row-major memory for the tensors of one collective: their own where they lie so, copies where
 * they do not. Used by one thread.
 */
final class Staging implements AutoCloseable {
  private record Block(long address, long bytes) {}

  private record Late(long address, StridedTensor tensor) {}

  private final List<Storage> held;
  private List<Block> blocks = List.of();
  private List<Fabric.Transfer> transfers = List.of();
  private List<Late> late = List.of();

  /** For tensors whose storages someone else holds. */
  Staging() {
    this(List.of());
  }

  /**
   * For tensors of these storages, which are held while this is open.
   *
   * @param held where the tensors lie
   */
  Staging(List<Storage> held) {
    this.held = held;
  }

  /** Says that a library uses the memory; returns the transfer. */
  Fabric.Transfer usedBy(Fabric.Transfer transfer) {
    transfers = with(transfers, transfer);
    return transfer;
  }

  /** A tensor's elements to read. */
  Piece in(StridedTensor t) {
    return t.isContiguous() ? direct(t) : copy(t);
  }

  /** A tensor's elements to read, apart from the tensor's own memory. */
  Piece copy(StridedTensor t) {
    Piece piece = block(bytes(t));
    Layouts.pack(t, piece.address());
    return piece;
  }

  /** Memory for a tensor's new elements, which are not what is there before. */
  Piece out(StridedTensor t) {
    if (t.isContiguous()) {
      return direct(t);
    }
    Piece piece = block(bytes(t));
    late = with(late, new Late(piece.address(), t));
    return piece;
  }

  /** A tensor's elements to read and replace. */
  Piece inOut(StridedTensor t) {
    if (t.isContiguous()) {
      return direct(t);
    }
    Piece piece = copy(t);
    late = with(late, new Late(piece.address(), t));
    return piece;
  }

  /** Writes the new elements to the tensors that were staged. */
  void finish() {
    for (int i = 0; i < late.size(); i++) {
      Layouts.unpack(late.get(i).address(), late.get(i).tensor());
    }
  }

  /** Memory for a while. */
  Piece block(long bytes) {
    if (bytes == 0) {
      return new Piece(0, 0);
    }
    long address = HostMemory.allocate(bytes);
    blocks = with(blocks, new Block(address, bytes));
    return new Piece(address, bytes);
  }

  /** Most collectives stage nothing. */
  private static <T> List<T> with(List<T> list, T more) {
    List<T> out = list.isEmpty() ? new ArrayList<>() : list;
    out.add(more);
    return out;
  }

  private static Piece direct(StridedTensor t) {
    return new Piece(t.rawAddress(), bytes(t));
  }

  static long bytes(StridedTensor t) {
    return t.numel() * t.dtype().byteSize();
  }

  @Override
  public void close() {
    if (transfers.isEmpty()) {
      free();
      return;
    }
    List<Fabric.Transfer> running = new ArrayList<>(transfers);
    running.removeIf(Fabric.Transfer::isDone);
    if (running.isEmpty()) {
      free();
      return;
    }
    for (Storage s : held) {
      Storage unused = s.retain();
    }
    Abandoned.add(
        running,
        () -> {
          free();
          held.forEach(Storage::release);
        });
  }

  private void free() {
    for (int i = 0; i < blocks.size(); i++) {
      HostMemory.free(blocks.get(i).address(), blocks.get(i).bytes());
    }
    blocks = List.of();
  }
}
