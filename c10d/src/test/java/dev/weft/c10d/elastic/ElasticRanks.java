package dev.weft.c10d.elastic;

import dev.weft.c10d.store.Rendezvous;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** The programs that the tests of elastic runs start as ranks. */
final class ElasticRanks {
  private static final Duration LONG = Duration.ofSeconds(60);

  private ElasticRanks() {}

  private static int variable(String name) {
    return Integer.parseInt(System.getenv().getOrDefault(name, "-1"));
  }

  static void killSelf() throws Exception {
    new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid()).start().waitFor();
  }

  /** Says where it is, as soon as all ranks of its world are there. */
  static Rendezvous arrive() {
    Rendezvous met = Rendezvous.at("env://").timeout(LONG).join();
    long number = met.store().add("arrived", 1);
    met.store().barrier("here", met.worldSize());
    System.out.printf(
        "rank %d of %d, local %s of %s, node %s of %s, restart %s of %s, run %s%s%n",
        met.rank(),
        met.worldSize(),
        System.getenv("LOCAL_RANK"),
        System.getenv("LOCAL_WORLD_SIZE"),
        System.getenv("GROUP_RANK"),
        System.getenv("GROUP_WORLD_SIZE"),
        System.getenv("TORCHELASTIC_RESTART_COUNT"),
        System.getenv("TORCHELASTIC_MAX_RESTARTS"),
        System.getenv("TORCHELASTIC_RUN_ID"),
        number > met.worldSize() ? ", AND KEYS OF ANOTHER ATTEMPT" : "");
    System.out.flush();
    return met;
  }

  /** Ends well, but for rank 1 of the first attempts, which is killed, throws or exits. */
  static final class Breaking {
    private Breaking() {}

    /**
     * Runs it.
     *
     * @param args how it fails, and before which restart count it does
     */
    public static void main(String[] args) throws Exception {
      try (var met = arrive()) {
        if (met.rank() == 1 && variable("TORCHELASTIC_RESTART_COUNT") < Integer.parseInt(args[1])) {
          System.err.println("about to fail");
          switch (args[0]) {
            case "kill" -> killSelf();
            case "throw" -> throw new IllegalStateException("batch 17 is empty");
            default -> System.exit(Integer.parseInt(args[0]));
          }
        }
        met.store().barrier("end", met.worldSize(), LONG);
      }
    }
  }

  /**
   * Runs until the world has a size, after it has had another; then it ends well. Without the other
   * one it would be luck whether all agents come before the first of them is through.
   */
  static final class UntilWorldHas {
    private UntilWorldHas() {}

    /**
     * Runs it.
     *
     * @param args the size, a folder in which each rank says that it is there, and the file there
     *     that the other world leaves
     */
    public static void main(String[] args) throws Exception {
      try (var met = arrive()) {
        Files.writeString(Path.of(args[1], "rank" + met.rank() + "of" + met.worldSize()), "");
        if (met.worldSize() != Integer.parseInt(args[0])
            || !Files.exists(Path.of(args[1], args[2]))) {
          Ranks.sleep();
        }
        met.store().barrier("end", met.worldSize(), LONG);
      }
    }
  }

  /** Sleeps, and says so in a file when it gets SIGTERM. */
  static final class Patient {
    private Patient() {}

    public static void main(String[] args) throws Exception {
      try (var met = arrive()) {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(() -> write(Path.of(args[0], "term" + met.rank()))));
        Files.writeString(Path.of(args[0], "rank" + met.rank()), "");
        Ranks.sleep();
      }
    }

    private static void write(Path file) {
      try {
        Files.writeString(file, "");
      } catch (java.io.IOException e) {
        throw new java.io.UncheckedIOException(e);
      }
    }
  }

  /** An agent with a process of its own. */
  static final class Agent {
    private Agent() {}

    /**
     * Runs it.
     *
     * @param args MIN, MAX, port, ranks, restarts, seconds to join, program and its arguments
     */
    public static void main(String[] args) {
      var list = List.of(args);
      var config =
          LaunchConfig.of(args[6], Integer.parseInt(args[3]))
              .arguments(list.subList(7, list.size()))
              .jvmArguments(List.of("-Xmx64m", "-XX:TieredStopAtLevel=1"))
              .noticePeriod(Duration.ofSeconds(1))
              .gracePeriod(Duration.ofSeconds(5))
              .runId("test")
              .build();
      var options =
          ElasticOptions.of(
                  Integer.parseInt(args[0]),
                  Integer.parseInt(args[1]),
                  "127.0.0.1",
                  Integer.parseInt(args[2]))
              .withMaxRestarts(Integer.parseInt(args[4]))
              .withJoining(Duration.ofSeconds(Integer.parseInt(args[5])), Duration.ofSeconds(1))
              .withHeartbeat(Duration.ofMillis(300), Duration.ofSeconds(3));
      System.exit(ElasticAgent.run(config, options));
    }
  }
}
