package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Dumps in a folder: pickles whose names end in the rank's digits, as PyTorch has them, or JSON
 * texts whose names end in the digits and {@code .json}. Stateless.
 */
public final class DumpFiles {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Pattern RANK = Pattern.compile("(\\d+)(\\.json)?$");

  private DumpFiles() {}

  static void write(Path file, Map<String, @Nullable Object> snapshot) throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    if (folder != null) {
      Path unused = Files.createDirectories(folder);
    }
    // A reader never sees half a file.
    Path part = file.resolveSibling(file.getFileName() + ".part");
    Path written = Files.write(part, PickleWriter.pickle(snapshot));
    Path unused = Files.move(written, file, StandardCopyOption.REPLACE_EXISTING);
  }

  /**
   * The dumps of a folder by rank.
   *
   * @param prefix what file names start with; empty for any
   * @throws IllegalArgumentException if two files are of one rank, or none is of any
   * @throws IOException if a file cannot be read or holds no dump
   */
  public static SortedMap<Integer, JsonNode> read(Path folder, String prefix) throws IOException {
    SortedMap<Integer, Path> files = new TreeMap<>();
    try (Stream<Path> all = Files.list(folder)) {
      for (Path file : all.sorted().toList()) {
        Matcher m = RANK.matcher(file.getFileName().toString());
        if (!Files.isRegularFile(file)
            || !file.getFileName().toString().startsWith(prefix)
            || !m.find()) {
          continue;
        }
        Path other = files.put(Integer.parseInt(m.group(1)), file);
        if (other != null) {
          throw new IllegalArgumentException(
              "folder "
                  + folder
                  + " has two dumps of rank "
                  + m.group(1)
                  + ": "
                  + other.getFileName()
                  + " and "
                  + file.getFileName()
                  + "; choose with a prefix");
        }
      }
    }
    if (files.isEmpty()) {
      throw new IllegalArgumentException(
          "folder "
              + folder
              + " has no dump; expected files whose names "
              + (prefix.isEmpty() ? "" : "start with '" + prefix + "' and ")
              + "end in a rank's digits");
    }
    SortedMap<Integer, JsonNode> out = new TreeMap<>();
    for (Map.Entry<Integer, Path> e : files.entrySet()) {
      out.put(e.getKey(), read(e.getValue()));
    }
    return out;
  }

  private static JsonNode read(Path file) throws IOException {
    byte[] content = Files.readAllBytes(file);
    JsonNode dump;
    try {
      dump =
          content.length > 0 && content[0] == '{'
              ? JSON.readTree(content)
              : JSON.valueToTree(PickleReader.read(content));
    } catch (IOException e) {
      throw new IOException(file + " cannot be read: " + e.getMessage(), e);
    }
    if (!dump.path("entries").isArray() || !dump.path("pg_config").isObject()) {
      throw new IOException(file + " holds no flight recorder dump: it has no entries");
    }
    return dump;
  }
}
