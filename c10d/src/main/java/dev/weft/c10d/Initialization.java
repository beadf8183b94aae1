package dev.weft.c10d;

import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Rendezvous;
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
    String url = options.initMethod() == null ? "env://" : options.initMethod();
    Rendezvous.Builder builder = Rendezvous.at(url).timeout(options.timeout());
    if (options.rank() >= 0) {
      builder.rank(options.rank());
    }
    if (options.worldSize() >= 0) {
      builder.worldSize(options.worldSize());
    }
    Rendezvous met = builder.join();
    return join(options, met.store(), met.rank(), met.worldSize(), met);
  }

  private static World join(
      InitOptions options, Store store, int rank, int worldSize, AutoCloseable owned) {
    RankContext context =
        new RankContext(rank, worldSize, () -> store, options.timeout(), options.backend(), null);
    context.becomeProcess();
    return new World(context, owned);
  }
}
