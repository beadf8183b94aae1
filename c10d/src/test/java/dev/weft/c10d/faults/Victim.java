package dev.weft.c10d.faults;

import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.store.FileStore;
import dev.weft.c10d.store.Store;
import dev.weft.c10d.store.TcpStore;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** The process that a fault happens to: a rank, or the server of the store. */
public final class Victim {
  private Victim() {}

  /** Arguments: a file for the store, the stage, the rank, the world size; or "server". */
  public static void main(String[] args) throws Exception {
    if (args[0].equals("server")) {
      try (TcpStore store = TcpStore.at("127.0.0.1", 0).server(true).open()) {
        System.out.println("port " + store.port());
        pause();
      }
    }
    Store store = FileStore.open(Path.of(args[0]), 3, Stage.TIMEOUT.multipliedBy(10));
    Stage stage = Stage.valueOf(args[1]);
    int rank = Integer.parseInt(args[2]);
    RankContext context =
        ProcessRanks.rank(rank, Integer.parseInt(args[3]), store, Stage.TIMEOUT.multipliedBy(10));
    if (stage == Stage.CONNECT) {
      // It has told where it is, and answers nobody.
      ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
      store.set("weft/host/" + rank, "127.0.0.1 " + silent.getLocalPort() + " " + "00".repeat(16));
    }
    stage.arrive(context);
    System.out.println("there");
    if (stage.isLoop()) {
      stage.act(context, rank);
    }
    pause();
  }

  private static void pause() {
    while (true) {
      LockSupport.park();
    }
  }
}
