package dev.weft.dtensor.checkpoint;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.LocalBlock;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Casts;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Fills tensors from the files of a folder, each opened when first asked for. */
final class TensorReader implements AutoCloseable {
  private final Path folder;
  private final Map<String, Safetensors> open = new HashMap<>();

  TensorReader(Path folder) {
    this.folder = folder;
  }

  Safetensors file(String name) {
    return open.computeIfAbsent(name, n -> Safetensors.open(folder.resolve(n)));
  }

  /** Reads what of the pieces lies on this rank; values of another dtype are converted. */
  void fill(String name, CheckpointIndex.Entry entry, Tensor target) {
    StridedTensor part = Checkpoint.part(target);
    if (part.numel() == 0) {
      return;
    }
    List<LocalBlock> blocks =
        target instanceof DTensor d
            ? d.spec().localBlocks()
            : List.of(
                new LocalBlock(new long[target.ndim()], new long[target.ndim()], target.shape()));
    for (LocalBlock block : blocks) {
      try (TensorScope scope = TensorScope.open()) {
        fill(name, entry, block.globalStart(), block.of(part));
      }
    }
    part.storage().bumpVersion();
  }

  private void fill(String name, CheckpointIndex.Entry entry, long[] start, StridedTensor part) {
    DType stored = DType.of(entry.dtype());
    boolean direct = part.isContiguous() && part.device().isCpu() && part.dtype() == stored;
    StridedTensor dense = direct ? part : Tensors.empty(stored, part.shape());
    long filled = 0;
    for (CheckpointIndex.Piece piece : entry.pieces()) {
      filled += PieceReader.copy(file(piece.file()), name, piece, start, dense);
    }
    if (filled != part.numel()) {
      throw new CheckpointException(
          "the pieces of tensor '"
              + name
              + "' in "
              + folder
              + " hold "
              + filled
              + " of the "
              + part.numel()
              + " elements of a block of this rank's part");
    }
    if (!direct) {
      Regions.copy((StridedTensor) Casts.to(dense, part.dtype()), part);
    }
  }

  @Override
  public void close() {
    List.copyOf(open.values()).forEach(Safetensors::close);
  }
}
