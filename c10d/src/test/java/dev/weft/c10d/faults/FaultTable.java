package dev.weft.c10d.faults;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What was tried, and how it ended; written to {@code target/faults.txt}. Thread-safe. */
final class FaultTable {
  private final List<String> rows = Collections.synchronizedList(new ArrayList<>());

  void add(String fault, Object stage, String ending, double seconds) {
    rows.add("| %s | %s | %s | %.1f s |".formatted(fault, stage, ending, seconds));
  }

  void write(String name) throws java.io.IOException {
    List<String> lines = new ArrayList<>(rows);
    Collections.sort(lines);
    lines.add(0, "| fault | stage | how it ended | after |");
    lines.add(1, "| --- | --- | --- | --- |");
    Path folder = Files.createDirectories(Path.of("target", "faults"));
    Files.write(folder.resolve(name + ".md"), lines);
  }
}
