package dev.weft.examples.trainer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * The file {@code losses.csv}: a line a step, each written at once. A run that goes on from a
 * checkpoint drops the lines of later steps first, so that no step is there twice. Used by one
 * rank.
 */
final class LossLog {
  private final Path file;
  private final List<LossRow> rows = new ArrayList<>();

  private LossLog(Path file) {
    this.file = file;
  }

  /**
   * Opens the file, and keeps its lines up to a step.
   *
   * @throws IllegalArgumentException if the file is something else
   */
  static LossLog open(Path file, long lastStep) {
    LossLog log = new LossLog(file);
    try {
      Files.createDirectories(file.toAbsolutePath().getParent());
      if (Files.exists(file) && lastStep > 0) {
        log.keep(Files.readString(file), lastStep);
      }
      StringBuilder text = new StringBuilder(LossRow.HEADER).append('\n');
      log.rows.forEach(r -> text.append(r.toCsv()).append('\n'));
      Files.writeString(file, text);
    } catch (IOException e) {
      throw new UncheckedIOException("losses cannot be written to " + file + ": " + e, e);
    }
    return log;
  }

  /**
   * Reads a file; half a line at its end is left out.
   *
   * @throws IllegalArgumentException if it is not there, or something else
   */
  static List<LossRow> read(Path file) {
    LossLog log = new LossLog(file);
    try {
      log.keep(Files.readString(file), Long.MAX_VALUE);
    } catch (IOException e) {
      throw new IllegalArgumentException("losses cannot be read from " + file + ": " + e, e);
    }
    return log.rows();
  }

  private void keep(String text, long lastStep) {
    // What follows the last line's end is half a line, left by a run that was killed.
    List<String> lines = text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
    if (!lines.isEmpty() && !lines.get(0).equals(LossRow.HEADER)) {
      throw new IllegalArgumentException(
          file + " begins with '" + lines.get(0) + "'; expected " + LossRow.HEADER);
    }
    for (int i = 1; i < lines.size(); i++) {
      LossRow row;
      try {
        row = LossRow.parse(lines.get(i));
      } catch (IllegalArgumentException e) {
        throw new IllegalArgumentException(file + ", line " + (i + 1) + ": " + e.getMessage(), e);
      }
      if (row.step() <= lastStep) {
        rows.add(row);
      }
    }
  }

  /** Adds a line. */
  void add(LossRow row) {
    rows.add(row);
    try {
      Files.write(
          file,
          (row.toCsv() + "\n").getBytes(StandardCharsets.UTF_8),
          StandardOpenOption.WRITE,
          StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException("losses cannot be written to " + file + ": " + e, e);
    }
  }

  /** All lines. */
  List<LossRow> rows() {
    return List.copyOf(rows);
  }
}
