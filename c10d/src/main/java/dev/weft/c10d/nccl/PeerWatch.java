package dev.weft.c10d.nccl;

import dev.weft.c10d.Backend;
import dev.weft.c10d.BackendRegistry;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.PeerListener;
import dev.weft.c10d.RankContext;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Tells one rank's NCCL groups that another rank has died: NCCL itself does not notice on all
 * transports. The news comes over the host backend's connections, which are made here where the
 * world does without that backend. Thread-safe; one a rank.
 */
final class PeerWatch implements PeerListener, AutoCloseable {
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(2);

  private final Set<NcclGroup> groups = ConcurrentHashMap.newKeySet();
  private final RankContext context;
  private @Nullable Backend connections;

  private PeerWatch(RankContext context) {
    this.context = context;
  }

  static PeerWatch of(RankContext context) {
    return context.resource(
        PeerWatch.class,
        () -> {
          PeerWatch made = new PeerWatch(context);
          context.addPeerListener(made);
          return made;
        });
  }

  /** Connects to all other ranks, who do the same: for the group of all ranks. */
  synchronized void connect(Duration timeout) {
    if (connections == null && !context.isThreadWorld() && context.worldSize() > 1) {
      connections =
          BackendRegistry.available("host")
              .create(
                  new GroupContext(
                      context,
                      "nccl-peers",
                      "",
                      IntStream.range(0, context.worldSize()).boxed().toList(),
                      context.rank(),
                      timeout,
                      null));
    }
  }

  void add(NcclGroup group) {
    groups.add(group);
  }

  void remove(NcclGroup group) {
    groups.remove(group);
  }

  @Override
  public void peerFailed(int globalRank, Throwable cause) {
    groups.forEach(g -> g.peerFailed(globalRank, cause));
  }

  /** It ended well: what it had to do in its collectives is done. */
  @Override
  public void peerLeft(int globalRank) {}

  @Override
  public synchronized void close() {
    if (connections != null) {
      connections.close(CLOSE_LIMIT);
    }
  }
}
