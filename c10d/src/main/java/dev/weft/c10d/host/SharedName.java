package dev.weft.c10d.host;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The name of the file that a {@link SharedSegment} is mapped from: it tells which process made it,
 * so that what a killed one has left is known. Immutable.
 *
 * @param place where process ids mean the same: a machine's boot and the container on it
 * @param process the maker's id there
 * @param started when it started, in the kernel's ticks since boot; ids are used again
 * @param token random, in hexadecimal digits
 */
record SharedName(String place, long process, long started, String token) {
  private static final Logger LOG = LoggerFactory.getLogger(SharedName.class);
  private static final String PREFIX = "weft-";
  private static final Pattern TEXT =
      Pattern.compile(
          PREFIX
              + "(?:([0-9a-f]{1,8})-([0-9]{1,18})-([0-9]{1,18})-)?([0-9a-f]{"
              + 2 * SharedSegment.TOKEN
              + "})");

  /** What this machine has called itself since it started. */
  static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  private static final Path CONTAINER = Path.of("/proc/self/ns/pid");
  private static final @Nullable String HERE = here();
  private static final String NOWHERE = "0";
  private static final int STATE = 0;
  private static final int START = 19;

  /** Names are there for moments; one that is so old is nobody's any more, whoever made it. */
  private static final Duration STALE = Duration.ofHours(1);

  /** A new name of this process's. */
  static SharedName random() {
    byte[] token = new byte[SharedSegment.TOKEN];
    new SecureRandom().nextBytes(token);
    String text = HexFormat.of().formatHex(token);
    long self = ProcessHandle.current().pid();
    try {
      if (HERE != null) {
        return new SharedName(HERE, self, startOf(self), text);
      }
    } catch (IOException e) {
      LOG.debug("when this process started is not known", e);
    }
    return new SharedName(NOWHERE, self, 0, text);
  }

  /** The name in a file's; null where it is no such file. One without its maker is nobody's. */
  static @Nullable SharedName of(Path file) {
    Matcher m = TEXT.matcher(file.getFileName().toString());
    if (!m.matches()) {
      return null;
    }
    String place = m.group(1);
    return place == null
        ? new SharedName(NOWHERE, 0, 0, m.group(4))
        : new SharedName(place, Long.parseLong(m.group(2)), Long.parseLong(m.group(3)), m.group(4));
  }

  String text() {
    return PREFIX + place + "-" + process + "-" + started + "-" + token;
  }

  /** Where this process is, or null where that cannot be told. */
  private static @Nullable String here() {
    try {
      String boot = Files.readString(BOOT_ID, UTF_8).trim();
      return Integer.toHexString((boot + Files.readSymbolicLink(CONTAINER)).hashCode());
    } catch (IOException | UnsupportedOperationException e) {
      LOG.debug("whether makers of files still run is not known here", e);
      return null;
    }
  }

  /** Whether its maker is known to have ended. */
  private boolean isOrphan() throws IOException {
    return place.equals(HERE) && startOf(process) != started;
  }

  /** In ticks, which all see alike, as dates are not; or -1 where it does not run. */
  static long startOf(long process) throws IOException {
    Path stat = Path.of("/proc", Long.toString(process), "stat");
    try {
      String text = Files.readString(stat, ISO_8859_1);
      // Behind the program's name, which may hold anything.
      String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ", -1);
      return fields[STATE].equals("Z") ? -1 : Long.parseLong(fields[START]);
    } catch (NoSuchFileException e) {
      return -1;
    }
  }

  /** Removes what processes that were killed have left in a folder. */
  static void sweep(Path folder) {
    Instant oldest = Instant.now().minus(STALE);
    try (DirectoryStream<Path> all = Files.newDirectoryStream(folder, PREFIX + "*")) {
      for (Path file : all) {
        SharedName name = of(file);
        if (name != null) {
          deleteIfLeft(file, name, oldest);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      LOG.debug("{} was not looked through for files that are left", folder, e);
    }
  }

  /**
   * Another rank may be faster, and a file may be another user's: the others are looked at still.
   */
  private static void deleteIfLeft(Path file, SharedName name, Instant oldest) {
    try {
      if (name.isOrphan() || Files.getLastModifiedTime(file).toInstant().isBefore(oldest)) {
        boolean unused = Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      LOG.debug("{} was left by a process that was killed, and stays", file, e);
    }
  }
}
