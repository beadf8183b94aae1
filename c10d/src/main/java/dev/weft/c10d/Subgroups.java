package dev.weft.c10d;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Groups made together. Immutable.
 *
 * @param own the one that this rank is in, or null
 * @param all all of them, markers where this rank is no member
 */
public record Subgroups(@Nullable ProcessGroup own, List<ProcessGroup> all) {
  /** Copies the list. */
  public Subgroups {
    all = List.copyOf(all);
  }
}
