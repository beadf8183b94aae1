package dev.weft.c10d;

import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What mpirun tells a process of its place: Open MPI's variables, or those of MPICH's process
 * manager.
 *
 * @param rank from 0
 * @param worldSize how many processes there are
 * @param localRank among those of this machine, or null where that is not told
 */
record MpirunEnvironment(int rank, int worldSize, @Nullable String localRank) {
  private static final String[][] NAMES = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}
  };

  /** Null where mpirun did not start this process. */
  static @Nullable MpirunEnvironment of(Map<String, String> environment) {
    for (String[] names : NAMES) {
      String rank = environment.get(names[0]);
      String size = environment.get(names[1]);
      if (rank != null && size != null) {
        return new MpirunEnvironment(
            number(names[0], rank), number(names[1], size), environment.get(names[2]));
      }
    }
    return null;
  }

  /** The same in torchrun's variables, beside the others. */
  Map<String, String> asTorchrun(Map<String, String> environment) {
    Map<String, String> all = new HashMap<>(environment);
    all.put("RANK", String.valueOf(rank));
    all.putIfAbsent("WORLD_SIZE", String.valueOf(worldSize));
    if (localRank != null) {
      all.putIfAbsent("LOCAL_RANK", localRank);
    }
    return all;
  }

  private static int number(String name, String value) {
    try {
      return Integer.parseInt(value.trim());
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          "environment variable " + name + " is '" + value + "'; expected an integer", e);
    }
  }
}
