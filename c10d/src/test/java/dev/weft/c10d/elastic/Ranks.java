package dev.weft.c10d.elastic;

import dev.weft.c10d.FailureNotice;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.store.Rendezvous;
import dev.weft.c10d.store.Store;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The programs that the launcher's tests start as ranks. */
final class Ranks {
  private static final Duration LONG = Duration.ofSeconds(60);

  private Ranks() {}

  static int rank() {
    return Integer.parseInt(System.getenv().getOrDefault("RANK", "-1"));
  }

  static void sleep() throws InterruptedException {
    Thread.sleep(60_000);
  }

  /** Tells its process number to the test. */
  static void tell(String folder, String name, long pid) throws Exception {
    Path part = Files.writeString(Path.of(folder, name + ".part"), Long.toString(pid));
    Files.move(part, Path.of(folder, name));
  }

  /** Prints its place in the world, and meets the others at the launcher's store. */
  static final class Hello {
    private Hello() {}

    public static void main(String[] args) {
      var names =
          List.of(
              "RANK",
              "WORLD_SIZE",
              "LOCAL_RANK",
              "LOCAL_WORLD_SIZE",
              "GROUP_RANK",
              "GROUP_WORLD_SIZE",
              "ROLE_RANK",
              "ROLE_WORLD_SIZE",
              "ROLE_NAME",
              "MASTER_ADDR",
              "TORCHELASTIC_RESTART_COUNT",
              "TORCHELASTIC_MAX_RESTARTS",
              "TORCHELASTIC_RUN_ID",
              "TORCHELASTIC_USE_AGENT_STORE",
              "OMP_NUM_THREADS");
      Map<String, String> seen = new TreeMap<>(System.getenv());
      seen.keySet().retainAll(names);
      try (var met = Rendezvous.at("env://").timeout(LONG).join()) {
        met.store().add("sum", met.rank());
        met.store().barrier("added", met.worldSize());
        System.out.println(
            seen
                + " sum="
                + met.store().getString("sum")
                + " args="
                + List.of(args)
                + " x="
                + System.getProperty("x"));
      }
    }
  }

  /** Prints 1000 numbered lines, in pieces that do not end where lines do. */
  static final class Chatter {
    private Chatter() {}

    public static void main(String[] args) {
      var text = new StringBuilder();
      for (int i = 0; i < 1000; i++) {
        text.append("line ")
            .append(i)
            .append(" of rank ")
            .append(rank())
            .append(' ')
            .append("x".repeat(i % 97))
            .append("|\n");
      }
      for (int at = 0; at < text.length(); at += 37) {
        System.out.print(text.substring(at, Math.min(text.length(), at + 37)));
        System.out.flush();
      }
      System.out.print("no line end");
    }
  }

  /** Rank 2 throws while the others wait for it at the store, listening for failures. */
  static final class Thrower {
    private Thrower() {}

    public static void main(String[] args) throws Exception {
      try (var met = Rendezvous.at("env://").timeout(LONG).join()) {
        met.store().barrier("start", met.worldSize());
        if (met.rank() == 2) {
          new Thread(
                  () -> {
                    try {
                      sleep();
                    } catch (InterruptedException e) {
                      throw new IllegalStateException(e);
                    }
                  })
              .start();
          throw new IllegalStateException("batch 17 is empty");
        }
        follow(met.store());
      }
    }

    static void follow(Store store) {
      var notice = FailureNotice.await(store, LONG);
      throw new StoreException("rank " + notice.rank() + " failed: " + notice.reason());
    }
  }

  /** Rank 1 kills itself the hard way. */
  static final class Killed {
    private Killed() {}

    public static void main(String[] args) throws Exception {
      try (var met = Rendezvous.at("env://").timeout(LONG).join()) {
        met.store().barrier("start", met.worldSize());
        if (met.rank() == 1) {
          new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid())
              .start()
              .waitFor();
        }
        Thrower.follow(met.store());
      }
    }
  }

  /** Rank 0 ends with code 7; rank 1 has a child, and neither of them listens to SIGTERM. */
  static final class Stubborn {
    private Stubborn() {}

    public static void main(String[] args) throws Exception {
      if (rank() == 0) {
        while (!Files.exists(Path.of(args[0], "child"))) {
          Thread.onSpinWait();
        }
        System.exit(7);
      }
      Process child =
          new ProcessBuilder("sh", "-c", "trap '' TERM; while :; do sleep 1; done").start();
      Runtime.getRuntime()
          .addShutdownHook(
              new Thread(
                  () -> {
                    while (true) {
                      Thread.onSpinWait();
                    }
                  }));
      tell(args[0], "rank", ProcessHandle.current().pid());
      tell(args[0], "child", child.pid());
      sleep();
    }
  }

  /** Waits to be ended, with a child. */
  static final class Sleeper {
    private Sleeper() {}

    public static void main(String[] args) throws Exception {
      Process child = new ProcessBuilder("sleep", "60").start();
      tell(args[0], "child" + rank(), child.pid());
      tell(args[0], "rank" + rank(), ProcessHandle.current().pid());
      sleep();
    }
  }

  /** Ends well and leaves a process behind. */
  static final class Litterer {
    private Litterer() {}

    public static void main(String[] args) throws Exception {
      tell(args[0], "child" + rank(), new ProcessBuilder("sleep", "60").start().pid());
    }
  }

  /** A launcher of its own process, for tests that end it by a signal. */
  static final class Launcher {
    private Launcher() {}

    public static void main(String[] args) {
      System.exit(
          LocalLauncher.run(
              LaunchConfig.of(Sleeper.class.getName(), 2)
                  .arguments(List.of(args))
                  .jvmArguments(List.of("-Xmx64m"))
                  .build()));
    }
  }
}
