package dev.weft.c10d;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What happens to a collective on a rank that is no member: a warning, as in PyTorch. */
final class NonMembers {
  private static final Logger LOG = LoggerFactory.getLogger(ProcessGroup.class);

  private NonMembers() {}

  static void warn(ProcessGroup group, String operation) {
    LOG.warn(
        "{} on group {} does nothing on rank {}, which is no member",
        operation,
        group.describe(),
        group.context().rank());
  }
}
