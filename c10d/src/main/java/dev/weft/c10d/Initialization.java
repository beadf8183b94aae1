package dev.weft.c10d;

import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Store;

/** How a process becomes a rank. */
final class Initialization {
  private Initialization() {}

  static World init(InitOptions options) {
    Store given = options.store();
    if (given != null) {
      return join(options, given, options.rank(), options.worldSize(), () -> {});
    }
    if (options.initMethod() == null && System.getenv("RANK") == null) {
      HashStore alone = new HashStore();
      return join(options, alone, 0, 1, alone);
    }
    throw new IllegalArgumentException(
        "initMethod '" + options.initMethod() + "' is unknown; expected an explicit store");
  }

  private static World join(
      InitOptions options, Store store, int rank, int worldSize, AutoCloseable owned) {
    RankContext context =
        new RankContext(rank, worldSize, () -> store, options.timeout(), options.backend(), null);
    context.becomeProcess();
    return new World(context, owned);
  }
}
