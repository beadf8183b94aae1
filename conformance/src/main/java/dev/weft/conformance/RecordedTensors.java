package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.cpu.CopyKernels;
import dev.weft.tensor.cpu.Elements;
import dev.weft.tensor.memory.Memory;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/** Recorded tensors and how results are compared with them. */
final class RecordedTensors {
  // Where the tensors of collectives' cases lie: of this process, as a device belongs to one.
  private static volatile Device device = Device.CPU;

  private RecordedTensors() {}

  /** From now on tensors are made on a device. */
  static void useDevice(Device on) {
    device = on;
  }

  /** The same values and strides on the device in use. */
  private static StridedTensor placed(StridedTensor t) {
    if (device.isCpu()) {
      return t;
    }
    long elements = t.storage().byteSize() / t.dtype().byteSize();
    StridedTensor room =
        new StridedTensor(t.storage(), t.dtype(), new long[] {elements}, new long[] {1}, 0);
    StridedTensor there = Tensors.empty(t.dtype(), device, elements);
    Regions.copy(room, there);
    return there.withLayout(t.shape(), t.strides(), t.offset());
  }

  private static StridedTensor home(StridedTensor t) {
    return t.device().isCpu() ? t : (StridedTensor) t.to(Device.CPU);
  }

  static StridedTensor read(JsonNode node) {
    return placed(recorded(node));
  }

  private static StridedTensor recorded(JsonNode node) {
    long[] shape = Json.longs(node.get("shape"));
    StridedTensor t = Tensors.empty(DType.of(node.get("dtype").asText()), shape);
    byte[] bytes = HexFormat.of().parseHex(node.get("hex").asText());
    Memory.put(t.dataAddress(), bytes, 0, bytes.length);
    return t;
  }

  /** The same elements in memory with other strides. */
  static StridedTensor withStrides(StridedTensor given, long[] strides) {
    StridedTensor t = home(given);
    long last = 0;
    for (int i = 0; i < strides.length; i++) {
      last += (t.shape()[i] - 1) * strides[i];
    }
    StridedTensor room = Tensors.empty(t.dtype(), last + 1);
    int width = t.dtype().byteSize();
    for (long i = 0; i < t.numel(); i++) {
      long rest = i;
      long at = 0;
      for (int d = t.ndim() - 1; d >= 0; d--) {
        at += rest % t.shape()[d] * strides[d];
        rest /= t.shape()[d];
      }
      Memory.copy(t.dataAddress() + i * width, room.dataAddress() + at * width, width);
    }
    return placed(new StridedTensor(room.storage(), t.dtype(), t.shape(), strides, 0));
  }

  static StridedTensor like(StridedTensor t) {
    return zeros(t.dtype(), t.shape());
  }

  static StridedTensor zeros(DType dtype, long... shape) {
    StridedTensor t = Tensors.empty(dtype, shape);
    Memory.fill(t.dataAddress(), t.numel() * dtype.byteSize(), (byte) 0);
    return placed(t);
  }

  /** What differs, or null. */
  static @Nullable String compare(
      StridedTensor result, JsonNode want, double tolerance, boolean orderSensitive) {
    StridedTensor got = home(result);
    if (want.has("unspecified")) {
      return null;
    }
    StridedTensor expected = recorded(want);
    if (got.dtype() != expected.dtype() || got.numel() != expected.numel()) {
      return "got " + got.describe() + ", want " + expected.describe();
    }
    StridedTensor dense =
        new StridedTensor(
            Tensors.empty(got.dtype(), got.shape()).storage(),
            got.dtype(),
            got.shape(),
            Shapes.contiguousStrides(got.shape()),
            0);
    CopyKernels.copy(got, dense);
    int width = got.dtype().byteSize();
    for (long i = 0; i < got.numel(); i++) {
      long a = dense.dataAddress() + i * width;
      long b = expected.dataAddress() + i * width;
      if (!same(got.dtype(), a, b, tolerance, orderSensitive)) {
        return "element "
            + i
            + ": got "
            + Elements.getDouble(got.dtype(), a)
            + ", want "
            + Elements.getDouble(got.dtype(), b);
      }
    }
    return null;
  }

  private static boolean same(
      DType dtype, long a, long b, double tolerance, boolean orderSensitive) {
    if (dtype == DType.BOOL) {
      // Some recorded bytes are 2 or 3.
      return (Elements.getLong(dtype, a) != 0) == (Elements.getLong(dtype, b) != 0);
    }
    if (!dtype.isFloatingPoint()) {
      return Elements.getLong(dtype, a) == Elements.getLong(dtype, b);
    }
    double x = Elements.getDouble(dtype, a);
    double y = Elements.getDouble(dtype, b);
    if (orderSensitive && (Double.isNaN(x) || Double.isNaN(y))) {
      return true;
    }
    if (Double.isNaN(x) || Double.isNaN(y)) {
      return Double.isNaN(x) == Double.isNaN(y);
    }
    if (x == y) {
      return true;
    }
    double limit =
        tolerance > 0
            ? tolerance
            : switch (dtype) {
              case FLOAT32 -> 1e-5;
              case FLOAT64 -> 1e-12;
              default -> 0;
            };
    return Math.abs(x - y) <= limit + limit * Math.abs(y);
  }
}
