package dev.weft.c10d.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the rank that makes a {@link SharedSegment} tells the others: where it is. As a text of
 * several lines; one line says why there is none. Immutable.
 *
 * @param machine of the maker
 * @param file the segment's, which has its name only until all have mapped it
 * @param token what the file begins with, in hexadecimal digits
 * @param layout of the segment
 */
record SharedOffer(String machine, Path file, String token, SharedLayout layout) {
  static final String FOLDER = "WEFT_SHM_DIR";
  static final String HOST = "WEFT_HOST_ID";

  /** In the reason of a rank that cannot map the file for this one. */
  static final String ELSEWHERE = "is on another machine";

  private static final Logger LOG = LoggerFactory.getLogger(SharedOffer.class);
  private static final Path DEFAULT_FOLDER = Path.of("/dev/shm");

  /** A name for a new file; what is left of others in its folder is removed. */
  static Path newFile(Map<String, String> environment) {
    String named = environment.get(FOLDER);
    Path folder = named == null || named.isBlank() ? DEFAULT_FOLDER : Path.of(named.trim());
    SharedName.sweep(folder);
    return folder.resolve(SharedName.random().text());
  }

  /** Makes the segment; the offer as text, or in one line why there is none. */
  static String make(Path file, SharedLayout layout, Map<String, String> environment) {
    try {
      if (layout.bytes() > Integer.MAX_VALUE) {
        throw new IOException("it would have " + layout.bytes() + " bytes; 2^31 - 1 are the most");
      }
      String token = Objects.requireNonNull(SharedName.of(file)).token();
      SharedSegment.create(file, layout, HexFormat.of().parseHex(token));
      return new SharedOffer(thisMachine(environment), file, token, layout).text();
    } catch (IOException | RuntimeException e) {
      return ("cannot make " + file + " of " + layout.bytes() + " bytes: " + e).replace('\n', ' ');
    }
  }

  static boolean isOffer(String text) {
    return text.indexOf('\n') >= 0;
  }

  private String text() {
    return String.join(
        "\n",
        machine,
        file.toString(),
        token,
        layout.ranks() + " " + layout.inlineBytes() + " " + layout.slotBytes());
  }

  static SharedOffer parse(String text) {
    String[] lines = text.split("\n", -1);
    String[] numbers = lines[3].split(" ", -1);
    return new SharedOffer(
        lines[0],
        Path.of(lines[1]),
        lines[2],
        new SharedLayout(
            Integer.parseInt(numbers[0]),
            Integer.parseInt(numbers[1]),
            Integer.parseInt(numbers[2])));
  }

  SharedSegment map(Map<String, String> environment) throws IOException {
    if (!machine.equals(thisMachine(environment))) {
      throw new IOException(file + " is on " + machine);
    }
    return SharedSegment.map(file, layout, HexFormat.of().parseHex(token));
  }

  /** Why {@link #map} failed here, to follow this rank's name. */
  String whyNot(Exception failure, int maker, Map<String, String> environment) {
    return machine.equals(thisMachine(environment))
        ? "cannot map " + file + ": " + failure
        : ELSEWHERE + " than rank " + maker;
  }

  /** Tells machines apart: what {@value #HOST} says, or what the system does. */
  static String thisMachine(Map<String, String> environment) {
    String named = environment.get(HOST);
    if (named != null && !named.isBlank()) {
      return named.strip().replace('\n', ' ');
    }
    try {
      return Files.readString(SharedName.BOOT_ID, UTF_8).trim();
    } catch (IOException e) {
      LOG.debug("this machine has no {}", SharedName.BOOT_ID, e);
      return "unknown";
    }
  }

  /** Takes a file's name away; who has mapped it keeps the memory. */
  static void delete(Path file) {
    try {
      boolean unused = Files.deleteIfExists(file);
    } catch (IOException e) {
      LOG.warn("{} could not be removed; it may be deleted at any time", file, e);
    }
  }
}
