package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;

/**
 * How many collectives a record holds, and how many bytes they move by the grading formula; the
 * bytes are unbounded where the record lacks what the formula needs.
 *
 * @param count the number of collectives
 * @param bytes their bytes
 */
record CommBytes(int count, long bytes) {
  /** Both together. */
  CommBytes plus(CommBytes other) {
    boolean bounded = bytes != Long.MAX_VALUE && other.bytes != Long.MAX_VALUE;
    return new CommBytes(count + other.count, bounded ? bytes + other.bytes : Long.MAX_VALUE);
  }

  /** From {@code {counts, sequence_rank0}} or a flat map of counts. */
  static CommBytes of(JsonNode comm, DType dtype) {
    int count = 0;
    JsonNode counts = comm.has("counts") ? comm.get("counts") : comm;
    if (comm.has("counts_per_rank")) {
      counts = comm.get("counts_per_rank").get(0);
    }
    for (var e : counts.properties()) {
      count += e.getValue().isNumber() ? e.getValue().asInt() : 0;
    }
    long bytes = 0;
    if (!comm.has("sequence_rank0")) {
      return new CommBytes(count, count == 0 ? 0 : Long.MAX_VALUE);
    }
    for (JsonNode e : comm.get("sequence_rank0")) {
      if (!e.has("group") || !e.has("in_shape") || !e.has("out_shape")) {
        return new CommBytes(count, Long.MAX_VALUE);
      }
      long n = e.get("group").size();
      long in = Shapes.numel(Json.longs(e.get("in_shape"))) * dtype.byteSize();
      long out = Shapes.numel(Json.longs(e.get("out_shape"))) * dtype.byteSize();
      String op = e.get("op").asText();
      bytes +=
          op.contains("all_reduce")
              ? 2 * in * (n - 1) / n
              : op.contains("all_gather")
                  ? out * (n - 1) / n
                  : op.contains("reduce_scatter")
                      ? in * (n - 1) / n
                      : op.contains("all_to_all") || op.contains("alltoall") ? in * (n - 1) : in;
    }
    return new CommBytes(count, bytes);
  }
}
