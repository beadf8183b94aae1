package dev.weft.conformance;

import dev.weft.c10d.LocalWorld;
import java.nio.file.Path;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The runner of each golden file. */
final class Runners {
  // Files with cases; the others in the folders are examples, transcripts and configurations.
  private static final Set<String> FILES =
      Set.of(
          "mesh",
          "sharding",
          "redistribute",
          "funcol",
          "ops",
          "autograd",
          "tp",
          "collectives",
          "errors",
          "groups",
          "store-semantics",
          "fr-cases",
          "golden_mlp",
          "golden_gpt");

  private Runners() {}

  static boolean knows(String base) {
    return FILES.contains(base);
  }

  /** The runner of a file, or null where there is none yet. */
  static @Nullable CaseRunner of(String base, Path file) {
    return switch (base) {
      case "mesh" -> new MeshRunner();
      case "sharding" -> new ShardingRunner();
      case "redistribute" -> new RedistributeRunner();
      case "funcol" -> new FuncolRunner();
      case "collectives" -> new CollectivesRunner(LocalWorld::of);
      case "errors" -> new ErrorsRunner();
      case "groups" -> new GroupsRunner();
      case "store-semantics" -> new StoreRunner();
      case "autograd" -> new AutogradRunner();
      case "tp" -> new TpRunner();
      case "ops" -> new OpsRunner();
      case "fr-cases" -> new FlightRecorderRunner();
      default -> null;
    };
  }
}
