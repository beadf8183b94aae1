package dev.weft.cli.bench;

import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where a benchmark's JSON lines go. */
final class Output {
  @Option(names = "--json", paramLabel = "FILE", description = "Writes there, not to the terminal.")
  private @Nullable Path json;

  /** Runs a benchmark that prints to what it is given, and returns its exit code. */
  int write(ToIntFunction<PrintStream> benchmark) {
    Path file = json;
    if (file == null) {
      return benchmark.applyAsInt(System.out);
    }
    try (PrintStream out =
        new PrintStream(Files.newOutputStream(file), false, StandardCharsets.UTF_8)) {
      return benchmark.applyAsInt(out);
    } catch (IOException e) {
      throw new UncheckedIOException("--json " + file + " cannot be written: " + e, e);
    }
  }
}
