package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

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

  /**
   * A block of a tensor in a file.
   *
   * @param key its name in the file, where that is not the tensor's
   * @param crc32c the checksum of its bytes; null where it is not known
   */
  record Piece(
      @JsonProperty("file") String file,
      @JsonProperty("key") @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable String key,
      @JsonProperty("offset") long[] offset,
      @JsonProperty("shape") long[] shape,
      @JsonProperty("crc32c") @Nullable Long crc32c) {
    /** The name in the file. */
    String keyOf(String tensor) {
      return key == null ? tensor : key;
    }
  }
}
