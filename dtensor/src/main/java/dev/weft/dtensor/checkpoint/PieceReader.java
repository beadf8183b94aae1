package dev.weft.dtensor.checkpoint;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.zip.CRC32C;

/** Copies the intersection of a saved piece and a wanted part, reading only its bytes. */
final class PieceReader {
  private PieceReader() {}

  /**
   * Fills the elements of {@code target} that {@code piece} holds.
   *
   * @param targetOffset where the target starts in the global tensor
   * @param target contiguous, on the cpu
   * @return how many elements were filled
   */
  static long copy(
      Safetensors file,
      String name,
      CheckpointIndex.Piece piece,
      long[] targetOffset,
      StridedTensor target) {
    int n = target.ndim();
    long[] shape = target.shape();
    long[] size = new long[n];
    long[] inPiece = new long[n];
    long[] inTarget = new long[n];
    long count = 1;
    for (int d = 0; d < n; d++) {
      long from = Math.max(piece.offset()[d], targetOffset[d]);
      long to = Math.min(piece.offset()[d] + piece.shape()[d], targetOffset[d] + shape[d]);
      if (to <= from) {
        return 0;
      }
      size[d] = to - from;
      inPiece[d] = from - piece.offset()[d];
      inTarget[d] = from - targetOffset[d];
      count *= size[d];
    }
    // Trailing dimensions that are whole on both sides make one run with the one before them.
    int k = n - 1;
    while (k > 0 && size[k] == piece.shape()[k] && size[k] == shape[k]) {
      k--;
    }
    long run = 1;
    for (int d = Math.max(k, 0); d < n; d++) {
      run *= size[d];
    }
    int width = target.dtype().byteSize();
    long address = target.dataAddress();
    long[] index = new long[n];
    for (long done = 0; done < count; done += run) {
      long source = 0;
      long place = 0;
      for (int d = 0; d < n; d++) {
        source = source * piece.shape()[d] + inPiece[d] + index[d];
        place = place * shape[d] + inTarget[d] + index[d];
      }
      file.readBytes(piece.keyOf(name), source * width, address + place * width, run * width);
      for (int d = k - 1; d >= 0; d--) {
        if (++index[d] < size[d]) {
          break;
        }
        index[d] = 0;
      }
    }
    Long sum = piece.crc32c();
    if (sum != null && Arrays.equals(size, piece.shape()) && Arrays.equals(size, shape)) {
      requireSum(name, piece, sum, target);
    }
    return count;
  }

  /** The piece was read whole, so that its checksum can be compared. */
  private static void requireSum(
      String name, CheckpointIndex.Piece piece, long expected, StridedTensor target) {
    CRC32C sum = new CRC32C();
    long left = target.numel() * target.dtype().byteSize();
    byte[] bytes = new byte[(int) Math.min(1 << 20, Math.max(left, 1))];
    long address = target.dataAddress();
    while (left > 0) {
      int n = (int) Math.min(bytes.length, left);
      Memory.get(address, bytes, 0, n);
      sum.update(bytes, 0, n);
      address += n;
      left -= n;
    }
    if (sum.getValue() != expected) {
      throw new CheckpointException(
          piece.file()
              + " is damaged: the checksum of tensor '"
              + name
              + "' is "
              + sum.getValue()
              + "; the index has "
              + expected);
    }
  }
}
