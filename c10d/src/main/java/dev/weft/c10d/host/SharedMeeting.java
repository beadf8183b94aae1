package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import java.io.IOException;
import java.nio.file.Path;
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
  private static final Logger LOG = LoggerFactory.getLogger(SharedMeeting.class);
  private static final String YES = "yes";
  private static final int TELL = 3;
  private static final int ANSWER = 4;

  private SharedMeeting() {}

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
        file = SharedOffer.newFile(environment);
        told = SharedOffer.make(file, layout, environment);
        round.tell(TELL, told);
      } else {
        told = round.toldBy(TELL, 0);
      }
      String answer = YES;
      if (SharedOffer.isOffer(told)) {
        SharedOffer offer = SharedOffer.parse(told);
        try {
          segment = offer.map(environment);
        } catch (IOException | RuntimeException e) {
          answer = offer.whyNot(e, round.group().globalRank(0), environment);
        }
      } else if (leads) {
        answer = told; // one rank says why
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
        SharedOffer.delete(file);
      }
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
    if (reason.contains(SharedOffer.ELSEWHERE)) {
      LOG.info("group {} uses TCP: {}", group, reason);
      return;
    }
    LOG.warn(
        "group {} uses TCP and no shared memory, which is slower: {} ({}=tcp says that this is as"
            + " wanted, {} names another folder)",
        group,
        reason,
        HostTransport.VARIABLE,
        SharedOffer.FOLDER);
  }
}
