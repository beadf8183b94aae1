package dev.weft.c10d.host;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How the ranks of a group come to have a {@link SharedSegment}, within the group's first
 * collective: group rank 0 makes the file and tells where it is, all map it and tell whether they
 * could, and rank 0 removes its name again. The memory lives as long as a process has it mapped, so
 * nothing is left behind by ranks that are killed after that. Over TCP; all ranks come to the same
 * verdict. Stateless.
 */
final class SharedMeeting {
  static final String FOLDER = "WEFT_SHM_DIR";

  private static final Logger LOG = LoggerFactory.getLogger(SharedMeeting.class);
  private static final Path DEFAULT_FOLDER = Path.of("/dev/shm");
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
  private static final String YES = "yes";
  private static final String ELSEWHERE = "is on another machine";
  private static final int TELL = 3;
  private static final int ANSWER = 4;

  private SharedMeeting() {}

  /** What rank 0 tells: where the segment is, or why there is none. */
  private record Offer(String machine, String file, String token, SharedLayout layout) {
    String text() {
      return String.join(
          "\n",
          machine,
          file,
          token,
          layout.ranks() + " " + layout.inlineBytes() + " " + layout.slotBytes());
    }

    static Offer parse(String text) {
      String[] lines = text.split("\n", -1);
      String[] numbers = lines[3].split(" ", -1);
      return new Offer(
          lines[0],
          lines[1],
          lines[2],
          new SharedLayout(
              Integer.parseInt(numbers[0]),
              Integer.parseInt(numbers[1]),
              Integer.parseInt(numbers[2])));
    }
  }

  /**
   * Meets the other ranks.
   *
   * @param round the group's first collective
   * @param required whether there being no segment is an error
   * @return null where the ranks use TCP
   * @throws DistributedException if there is none and it is required, on all ranks
   */
  static @Nullable SharedSegment meet(
      Round round, SharedLayout layout, boolean required, Map<String, String> environment) {
    boolean leads = round.group().rank() == 0;
    Path file = null;
    SharedSegment segment = null;
    try {
      String told;
      if (leads) {
        byte[] token = new byte[SharedSegment.TOKEN];
        new SecureRandom().nextBytes(token);
        file = folder(environment).resolve("weft-" + HexFormat.of().formatHex(token));
        told = create(file, layout, token);
        round.tell(TELL, told);
      } else {
        told = round.toldBy(TELL, 0);
      }
      String answer;
      if (told.indexOf('\n') < 0) {
        answer = leads ? told : YES; // one rank says why
      } else {
        Offer offer = Offer.parse(told);
        try {
          segment =
              SharedSegment.map(
                  Path.of(offer.file()), offer.layout(), HexFormat.of().parseHex(offer.token()));
          answer = YES;
        } catch (IOException | RuntimeException e) {
          answer =
              offer.machine().equals(machine())
                  ? "cannot map " + offer.file() + ": " + e
                  : ELSEWHERE + " than rank " + round.group().globalRank(0);
        }
      }
      String reason = firstReason(round, answer);
      if (reason != null) {
        refuse(round, reason, required);
        return null;
      }
      SharedSegment made = Objects.requireNonNull(segment);
      segment = null;
      return made;
    } finally {
      if (segment != null) {
        segment.release();
      }
      if (file != null) {
        delete(file);
      }
    }
  }

  private static Path folder(Map<String, String> environment) {
    String named = environment.get(FOLDER);
    return named == null || named.isBlank() ? DEFAULT_FOLDER : Path.of(named.trim());
  }

  /** The offer, or in one line why there is none. */
  private static String create(Path file, SharedLayout layout, byte[] token) {
    try {
      if (layout.bytes() > Integer.MAX_VALUE) {
        throw new IOException("it would have " + layout.bytes() + " bytes; 2^31 - 1 are the most");
      }
      SharedSegment.create(file, layout, token);
      return new Offer(machine(), file.toString(), HexFormat.of().formatHex(token), layout).text();
    } catch (IOException | RuntimeException e) {
      return ("cannot make " + file + " of " + layout.bytes() + " bytes: " + e).replace('\n', ' ');
    }
  }

  /** Tells the others this rank's answer; the first one that is no yes, with who gave it. */
  private static @Nullable String firstReason(Round round, String own) {
    round.tell(ANSWER, own);
    String[] answers = round.toldByAll(ANSWER, own);
    for (int r = 0; r < answers.length; r++) {
      if (!answers[r].equals(YES)) {
        return "rank " + round.group().globalRank(r) + " " + answers[r];
      }
    }
    return null;
  }

  private static void refuse(Round round, String reason, boolean required) {
    String group = round.group().describe();
    if (required) {
      throw new DistributedException(
          "group "
              + group
              + " cannot use shared memory, which "
              + HostTransport.VARIABLE
              + "=shm asks for: "
              + reason);
    }
    if (reason.contains(ELSEWHERE)) {
      LOG.info("group {} uses TCP: {}", group, reason);
      return;
    }
    LOG.warn(
        "group {} uses TCP and no shared memory, which is slower: {} ({}=tcp says that this is as"
            + " wanted, {} names another folder)",
        group,
        reason,
        HostTransport.VARIABLE,
        FOLDER);
  }

  /** Tells machines apart, for a message. */
  private static String machine() {
    try {
      return Files.readString(BOOT_ID, UTF_8).trim();
    } catch (IOException e) {
      LOG.debug("this machine has no {}", BOOT_ID, e);
      return "unknown";
    }
  }

  private static void delete(Path file) {
    try {
      boolean unused = Files.deleteIfExists(file);
    } catch (IOException e) {
      LOG.warn("{} could not be removed; it may be deleted at any time", file, e);
    }
  }
}
