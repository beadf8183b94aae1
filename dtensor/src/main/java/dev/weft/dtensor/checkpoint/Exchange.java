package dev.weft.dtensor.checkpoint;

import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.memory.Memory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Bytes of every rank to every rank; a collective. */
final class Exchange {
  private Exchange() {}

  static List<byte[]> all(ProcessGroup group, byte[] mine) {
    int n = group.size();
    try (TensorScope scope = TensorScope.open()) {
      StridedTensor length = Tensors.empty(DType.INT64, 1);
      Device device = group.controlDevice();
      StridedTensor lengths = Tensors.empty(DType.INT64, device, n);
      Memory.putLong(length.dataAddress(), mine.length);
      group.allGatherIntoTensor(lengths, length.to(device));
      long[] sizes = lengths.toLongArray();
      int width = (int) Arrays.stream(sizes).max().orElse(0);
      StridedTensor row = Tensors.empty(DType.UINT8, width);
      StridedTensor gathered = Tensors.empty(DType.UINT8, device, (long) n * width);
      Memory.fill(row.dataAddress(), width, (byte) 0);
      Memory.put(row.dataAddress(), mine, 0, mine.length);
      group.allGatherIntoTensor(gathered, row.to(device));
      StridedTensor rows = (StridedTensor) gathered.to(Device.CPU);
      List<byte[]> out = new ArrayList<>();
      for (int r = 0; r < n; r++) {
        byte[] bytes = new byte[(int) sizes[r]];
        Memory.get(rows.dataAddress() + (long) r * width, bytes, 0, bytes.length);
        out.add(bytes);
      }
      return out;
    }
  }
}
