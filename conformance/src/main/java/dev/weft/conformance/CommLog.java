package dev.weft.conformance;

import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Interceptor;
import java.util.ArrayList;
import java.util.List;

/**
 * Records the collectives that one rank issues, with the sizes that the grading formula needs. One
 * thread.
 */
final class CommLog implements Interceptor {
  /** One collective: its name, the size of its group, elements of the tensor in full. */
  private record Entry(String name, int ranks, long elements, DType dtype) {
    /** Bytes by the grading formula, at a number of bytes for an element. */
    long bytes(long width) {
      long full = elements * width;
      return switch (name) {
        case "allreduce_" -> 2 * full * (ranks - 1) / ranks;
        case "broadcast_" -> full;
        default -> full * (ranks - 1) / ranks;
      };
    }
  }

  private static final int OUTPUT_COUNT = 3;

  private final List<Entry> entries = new ArrayList<>();

  @Override
  public Tensor[] intercept(Call call) {
    String name = call.op().name();
    if (name.startsWith("c10d.") && !name.equals("c10d.barrier")) {
      entries.add(entry(name.substring(5), call));
    }
    return call.proceed();
  }

  private static Entry entry(String name, Call call) {
    int ranks = call.attrs().get(0, ProcessGroup.class).size();
    int outputs = call.attrs().intAt(OUTPUT_COUNT);
    long out = 0;
    long in = 0;
    for (int i = 0; i < call.inputs().length; i++) {
      if (i < outputs) {
        out += call.inputs()[i].numel();
      } else {
        in += call.inputs()[i].numel();
      }
    }
    long full = name.startsWith("alltoall") ? in * ranks : Math.max(in, out);
    return new Entry(name, ranks, full, call.inputs()[0].dtype());
  }

  /** How many there were. */
  int count() {
    return entries.size();
  }

  /** Their bytes, with every element as wide as the records', which name no dtype. */
  long bytes(DType recorded) {
    return entries.stream().mapToLong(e -> e.bytes(recorded.byteSize())).sum();
  }

  @Override
  public String toString() {
    return entries.stream()
        .map(e -> e.name + "/" + e.ranks + " x " + e.elements)
        .toList()
        .toString();
  }
}
