package dev.weft.c10d.elastic;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.base.Throwables;
import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Why a rank failed, in the file that {@code TORCHELASTIC_ERROR_FILE} names, in torchrun's format.
 *
 * @param message the exception in a line
 * @param trace the top of its stack, a frame a line
 * @param follows whether it only tells of a failure elsewhere
 */
record ErrorFile(String message, String trace, boolean follows) {
  static final String VARIABLE = "TORCHELASTIC_ERROR_FILE";

  private static final Logger log = LoggerFactory.getLogger(ErrorFile.class);
  private static final int MAX_FRAMES = 5;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Writes the file of a failure, the whole stack in it. */
  static void write(Path file, Throwable failure) throws IOException {
    var root = JSON.createObjectNode();
    var message = root.putObject("message");
    message.put("message", failure.toString());
    message
        .putObject("extraInfo")
        .put("py_callstack", Throwables.getStackTraceAsString(failure))
        .put("timestamp", Long.toString(Instant.now().getEpochSecond()));
    root.put("follows", failure instanceof DistributedException);
    Path part = file.resolveSibling(file.getFileName() + ".part");
    Files.createDirectories(file.toAbsolutePath().getParent());
    Files.writeString(part, root.toString());
    Files.move(part, file, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
  }

  /** Reads a file, which a rank that was killed has not written. */
  static Optional<ErrorFile> read(Path file) {
    if (!Files.exists(file)) {
      return Optional.empty();
    }
    try {
      JsonNode root = JSON.readTree(Files.readString(file));
      JsonNode message = root.path("message");
      // A program of the user's own may have written a plain text.
      String text = message.isTextual() ? message.asText() : message.path("message").asText();
      String frames =
          message
              .path("extraInfo")
              .path("py_callstack")
              .asText()
              .lines()
              .map(String::strip)
              .filter(line -> line.startsWith("at "))
              .takeWhile(line -> !line.contains(".reflect.")) // how the launcher called main
              .limit(MAX_FRAMES)
              .collect(Collectors.joining("\n"));
      return Optional.of(new ErrorFile(text, frames, root.path("follows").asBoolean()));
    } catch (IOException e) {
      log.warn("the error file {} of a rank cannot be read", file, e);
      return Optional.empty();
    }
  }
}
