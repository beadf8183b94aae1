package dev.weft.c10d.elastic;

import com.google.common.collect.ImmutableSet;
import java.nio.file.Path;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Where the output of the ranks goes. Immutable.
 *
 * @param folder where each rank gets {@code attempt_N/RANK/stdout.log} and {@code stderr.log}; null
 *     for no files
 * @param tee whether output goes to the launcher's own streams, too, where there are files
 * @param localRanks the ranks of this machine whose output the launcher shows; empty for all
 */
public record LogOptions(@Nullable Path folder, boolean tee, ImmutableSet<Integer> localRanks) {
  /** No files; everything is shown. */
  public static final LogOptions SHOW_ALL = new LogOptions(null, true, ImmutableSet.of());

  /**
   * The same with files.
   *
   * @param folder where they are made
   * @param tee whether the output is shown, too
   * @return the options
   */
  public LogOptions withFolder(Path folder, boolean tee) {
    return new LogOptions(folder, tee, localRanks);
  }

  /**
   * The same with the output of some ranks only.
   *
   * @param localRanks their numbers on this machine
   * @return the options
   */
  public LogOptions withLocalRanks(Set<Integer> localRanks) {
    return new LogOptions(folder, tee, ImmutableSet.copyOf(localRanks));
  }

  boolean shows(int localRank) {
    return (folder == null || tee) && (localRanks.isEmpty() || localRanks.contains(localRank));
  }
}
