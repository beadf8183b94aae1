package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/**
 * The contents of {@code index.json}.
 *
 * @param format always {@value #FORMAT}
 * @param step the training step
 * @param tensors by name
 * @param scalars numbers that were saved along
 * @param files bytes of each file
 */
record CheckpointIndex(
    @JsonProperty("format") String format,
    @JsonProperty("step") long step,
    @JsonProperty("tensors") Map<String, Entry> tensors,
    @JsonProperty("scalars") Map<String, Double> scalars,
    @JsonProperty("files") Map<String, Long> files) {
  static final String FORMAT = "weft-checkpoint/1";

  /** A tensor. */
  record Entry(
      @JsonProperty("dtype") String dtype,
      @JsonProperty("shape") long[] shape,
      @JsonProperty("pieces") List<Piece> pieces) {}

  /** A part of a tensor in a file, under the tensor's name. */
  record Piece(
      @JsonProperty("file") String file,
      @JsonProperty("offset") long[] offset,
      @JsonProperty("shape") long[] shape,
      @JsonProperty("crc32c") long crc32c) {}
}
