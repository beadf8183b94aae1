package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Rendezvous;
import dev.weft.c10d.store.Store;
import dev.weft.c10d.store.TcpStore;
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
      return launched(options);
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

  /** Nothing says who this process is but, perhaps, mpirun. */
  private static World launched(InitOptions options) {
    MpirunEnvironment mpirun = MpirunEnvironment.of(options.environment());
    if (mpirun == null || mpirun.worldSize() == 1) {
      HashStore alone = new HashStore();
      return join(options, alone, 0, 1, alone, null);
    }
    if (options.environment().containsKey(MASTER)) {
      return init(options.withEnvironment(mpirun.asTorchrun(options.environment())));
    }
    BackendConfig config = BackendConfig.parse(options.backend());
    for (String name : config.byDeviceType().values()) {
      LaunchedRank rank = BackendRegistry.available(name).launched(options.environment());
      if (rank != null) {
        return meet(options, rank);
      }
    }
    throw new IllegalArgumentException(
        "mpirun started this process as rank "
            + mpirun.rank()
            + " of "
            + mpirun.worldSize()
            + ", and environment variable MASTER_ADDR is not set; expected MASTER_ADDR and"
            + " MASTER_PORT for all ranks (mpirun -x MASTER_ADDR=... -x MASTER_PORT=...), or"
            + " backend 'mpi', which needs neither, but not '"
            + config
            + "'");
  }

  /** Rank 0 hosts the store and tells the others where, on the launcher's own way. */
  private static World meet(InitOptions options, LaunchedRank self) {
    Deadline deadline = Deadline.after(options.timeout());
    String where = null;
    TcpStore hosted = null;
    if (self.rank() == 0) {
      hosted =
          TcpStore.at(self.address(), 0)
              .server(true)
              .waitForWorkers(false)
              .timeout(options.timeout())
              .open();
      where = self.address() + " " + hosted.port();
    }
    TcpStore store;
    String host;
    try {
      String[] told = self.channel().broadcast(where, deadline.remaining()).split(" ", -1);
      host = told[0];
      store =
          hosted != null
              ? hosted
              : TcpStore.at(host, Integer.parseInt(told[1])).timeout(options.timeout()).open();
    } catch (RuntimeException e) {
      if (hosted != null) {
        Closing.quietly(hosted);
      }
      throw e;
    }
    return join(options, store, self.rank(), self.worldSize(), store, host);
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
              FlightRecorderConfig.fromEnvironment(options.environment()),
              options.environment());
    } catch (RuntimeException e) {
      Closing.quietly(owned);
      throw e;
    }
    context.closeAtEnd(owned);
    try {
      context.becomeProcess();
      context.failures().begin(options.environment());
      context.openToOthers();
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
