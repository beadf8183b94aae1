package dev.weft.conformance;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.Tensor;
import org.jspecify.annotations.Nullable;

/** The calls of {@code errors.json} that are made without a world, or to make one. */
final class InitCalls {
  private static final InitOptions OPTIONS = InitOptions.DEFAULT.withTimeout(ErrorsRunner.TIMEOUT);

  private InitCalls() {}

  static boolean knows(String name) {
    return name.startsWith("uninitialized/")
        || (name.startsWith("init/") && !name.equals("init/twice"));
  }

  static @Nullable Object perform(String name) {
    return switch (name) {
      case "uninitialized/all_reduce" ->
          Distributed.allReduce(Tensor.of(new float[] {1}), ReduceOp.SUM);
      case "uninitialized/new_group" -> Distributed.newGroup(0);
      case "uninitialized/get_rank" -> Distributed.rank();
      case "uninitialized/is_initialized" -> Distributed.isInitialized();
      case "init/rank_too_large" -> join(3, 2);
      case "init/negative_rank_with_store" -> join(-1, 2);
      case "init/world_size_zero" -> join(0, 0);
      case "init/store_without_world_size" -> join(0, -1);
      case "init/store_and_init_method" ->
          join(OPTIONS.withInitMethod("env://").withStore(new HashStore(), 0, 1));
      case "init/unknown_backend" -> join(alone().withBackend("nope"));
      case "init/nccl_without_gpu_build" -> join(alone().withBackend("nccl"));
      case "init/peer_never_comes" -> join(0, 2);
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  private static InitOptions alone() {
    return OPTIONS.withStore(new HashStore(), 0, 1);
  }

  private static String join(int rank, int worldSize) {
    return join(OPTIONS.withStore(new HashStore(), rank, worldSize));
  }

  private static String join(InitOptions options) {
    try (World world = Distributed.init(options)) {
      return "world of " + world.size();
    }
  }
}
