package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Rendezvous;
import dev.weft.c10d.store.Store;
import dev.weft.tensor.Device;
import java.net.URI;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** How a process becomes a rank. */
final class Initialization {
  private static final String MASTER = "MASTER_ADDR";
  private static final Duration FAILED_LIMIT = Duration.ofSeconds(1);

  private Initialization() {}

  static World init(InitOptions options) {
    Store given = options.store();
    String method = options.initMethod();
    if (given != null) {
      if (method != null) {
        throw new IllegalArgumentException(
            "initMethod is '" + method + "' and a store is given, too; expected one of them");
      }
      String master = options.environment().get(MASTER);
      return join(options, given, options.rank(), options.worldSize(), () -> {}, master);
    }
    if (method == null && options.environment().get("RANK") == null) {
      HashStore alone = new HashStore();
      return join(options, alone, 0, 1, alone, null);
    }
    String url = method == null ? "env://" : method;
    Rendezvous.Builder builder =
        Rendezvous.at(url).timeout(options.timeout()).environment(options.environment());
    if (options.rank() >= 0) {
      builder.rank(options.rank());
    }
    if (options.worldSize() >= 0) {
      builder.worldSize(options.worldSize());
    }
    String master =
        url.startsWith("tcp:")
            ? URI.create(url).getHost()
            : url.startsWith("env:") ? options.environment().get(MASTER) : null;
    Rendezvous met = builder.join();
    return join(options, met.store(), met.rank(), met.worldSize(), met, master);
  }

  private static World join(
      InitOptions options,
      Store store,
      int rank,
      int worldSize,
      AutoCloseable owned,
      @Nullable String master) {
    RankContext context;
    try {
      context =
          new RankContext(
              rank,
              worldSize,
              () -> store,
              options.timeout(),
              options.backend(),
              null,
              master,
              FlightRecorderConfig.fromEnvironment(options.environment()));
    } catch (RuntimeException e) {
      Closing.quietly(owned);
      throw e;
    }
    context.closeAtEnd(owned);
    try {
      context.becomeProcess();
      Device device = options.deviceId();
      if (device != null) {
        context.bindDevice(device);
      }
      // Ranks that are missing are found out here, not in the first collective.
      Backend unused = context.world().backends().forControl();
      if (device != null) {
        Backend unusedEager = context.world().backends().of(device.type());
      }
    } catch (RuntimeException e) {
      context.close(FAILED_LIMIT);
      throw e;
    }
    return new World(context);
  }
}
