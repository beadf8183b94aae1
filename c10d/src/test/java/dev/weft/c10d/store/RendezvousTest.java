package dev.weft.c10d.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.RendezvousException;
import dev.weft.c10d.StoreException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How ranks find each other by a URL. */
class RendezvousTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofMillis(300);

  @TempDir private Path folder;
  private final ExecutorService ranks = Executors.newCachedThreadPool();

  @AfterEach
  void stop() {
    ranks.shutdownNow();
  }

  private static int port() throws Exception {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Joins as every rank at once; each tells its number to all. */
  private void meet(int worldSize, IntFunction<Rendezvous.Builder> rank) throws Exception {
    var tasks = new ArrayList<Future<List<String>>>();
    for (int r = 0; r < worldSize; r++) {
      int number = r;
      tasks.add(
          ranks.submit(
              () -> {
                try (var met = rank.apply(number).timeout(LONG).join()) {
                  assertThat(met.rank()).isEqualTo(number);
                  assertThat(met.worldSize()).isEqualTo(worldSize);
                  met.store().set("rank" + number, "I am " + number);
                  var heard = new ArrayList<String>();
                  for (int i = 0; i < worldSize; i++) {
                    heard.add(met.store().getString("rank" + i));
                  }
                  met.store().barrier("done", worldSize);
                  if (number == 0) {
                    for (int i = 1; i < worldSize; i++) {
                      met.store().waitFor(List.of("bye" + i));
                    }
                  } else {
                    met.store().set("bye" + number, "");
                  }
                  return heard;
                }
              }));
    }
    for (Future<List<String>> task : tasks) {
      assertThat(task.get(30, TimeUnit.SECONDS)).hasSize(worldSize).contains("I am 0");
    }
  }

  @Test
  void overTcp() throws Exception {
    int port = port();
    meet(3, r -> Rendezvous.at("tcp://127.0.0.1:%d?rank=%d&world_size=3".formatted(port, r)));
    meet(2, r -> Rendezvous.at("tcp://[::1]:" + port).rank(r).worldSize(2));
  }

  @Test
  void overTheEnvironment() throws Exception {
    int port = port();
    meet(3, r -> Rendezvous.at("env://").environment(environment(port, r, 3)));
  }

  /** Under the launcher, the launcher hosts the store; each attempt has keys of its own. */
  @Test
  void overTheLaunchersStore() throws Exception {
    try (var agent = TcpStore.at("127.0.0.1", 0).server(true).open()) {
      for (String attempt : List.of("0", "1")) {
        meet(
            2,
            r -> {
              var env = environment(agent.port(), r, 2);
              env.put("TORCHELASTIC_USE_AGENT_STORE", "True");
              env.put("TORCHELASTIC_RESTART_COUNT", attempt);
              return Rendezvous.at("env://").environment(env);
            });
        assertThat(agent.getString("/worker/attempt_" + attempt + "/rank1")).isEqualTo("I am 1");
      }
    }
  }

  @Test
  void overAFileWhichTheLastRankRemoves() throws Exception {
    Path file = folder.resolve("a store");
    meet(3, r -> Rendezvous.at(file.toUri() + "?world_size=3").rank(r));
    assertThat(file).doesNotExist();
  }

  private static Map<String, String> environment(int port, int rank, int worldSize) {
    var env = new HashMap<String, String>();
    env.put("MASTER_ADDR", "127.0.0.1");
    env.put("MASTER_PORT", Integer.toString(port));
    env.put("RANK", Integer.toString(rank));
    env.put("WORLD_SIZE", Integer.toString(worldSize));
    return env;
  }

  /** P46: the one that waits says who is missing. */
  @Test
  void namesTheRanksThatDidNotCome() throws Exception {
    int port = port();
    var second =
        ranks.submit(
            () ->
                Rendezvous.at("tcp://127.0.0.1:" + port + "?rank=1&world_size=4")
                    .timeout(LONG)
                    .join());
    assertThatThrownBy(
            () ->
                Rendezvous.at("tcp://127.0.0.1:" + port + "?rank=0&world_size=4")
                    .timeout(Duration.ofSeconds(2))
                    .join())
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("2 of 4 workers")
        .hasMessageContaining("127.0.0.1:" + port)
        .hasMessageContaining("2000 ms")
        .hasMessageContaining("no word from ranks [2, 3]");
    second.get(10, TimeUnit.SECONDS).close();
  }

  @Test
  void aMissingFolderIsAnErrorAtOnce() {
    assertThatThrownBy(
            () ->
                Rendezvous.at("file://" + folder + "/missing/store?rank=0&world_size=2")
                    .timeout(LONG)
                    .join())
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(folder + "/missing does not exist");
  }

  @Test
  void aFileLeftFromAnotherRunIsAnErrorAtOnce() throws Exception {
    String url = "file://" + folder + "/store?world_size=2";
    var killed = Rendezvous.at(url).rank(0).timeout(LONG).join();
    assertThatThrownBy(() -> Rendezvous.at(url).rank(0).timeout(LONG).join())
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank 0")
        .hasMessageContaining("left from another run");
    killed.close();

    Path notes = Files.writeString(folder.resolve("notes.txt"), "groceries: milk, bread, butter");
    assertThatThrownBy(
            () -> Rendezvous.at(notes.toUri() + "?world_size=2&rank=0").timeout(SHORT).join())
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("not a store");
    assertThat(notes).hasContent("groceries: milk, bread, butter");
  }

  private static void assertRefused(Rendezvous.Builder builder, String... parts) {
    assertThatThrownBy(builder::join)
        .isInstanceOf(IllegalArgumentException.class)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts));
  }

  @Test
  void badInputNamesTheVariableItsValueAndWhatWasExpected() {
    var env = environment(1, 0, 2);
    env.remove("RANK");
    assertRefused(Rendezvous.at("env://").environment(env), "RANK", "not set", "integer");
    env.put("RANK", "2");
    assertRefused(Rendezvous.at("env://").environment(env), "RANK is '2'", "from 0 to 1");
    env.put("RANK", "one");
    assertRefused(Rendezvous.at("env://").environment(env), "RANK is 'one'", "from 0 to 1");
    env.put("RANK", "0");
    env.put("MASTER_PORT", "http");
    assertRefused(Rendezvous.at("env://").environment(env), "MASTER_PORT is 'http'", "0 to 65535");
    env.put("MASTER_ADDR", "");
    assertRefused(Rendezvous.at("env://").environment(env), "MASTER_ADDR", "empty");
    env.put("MASTER_ADDR", "127.0.0.1");
    env.put("MASTER_PORT", "1");
    env.put("TORCHELASTIC_USE_AGENT_STORE", "maybe");
    assertRefused(
        Rendezvous.at("env://").environment(env),
        "TORCHELASTIC_USE_AGENT_STORE is 'maybe'",
        "true or false");
    env.put("WORLD_SIZE", "0");
    assertRefused(Rendezvous.at("env://").environment(env), "WORLD_SIZE is '0'", "1 or more");

    assertRefused(Rendezvous.at("tcp://127.0.0.1:1?rank=0"), "world_size", "missing");
    assertRefused(
        Rendezvous.at("tcp://127.0.0.1:1?rank=-1&world_size=2"), "rank", "'-1'", "from 0 to 1");
    assertRefused(Rendezvous.at("tcp://127.0.0.1?rank=0&world_size=2"), "a host and a port");
    assertRefused(Rendezvous.at("file://relative/path?rank=0&world_size=2"), "an absolute path");
    assertRefused(Rendezvous.at("http://x"), "'http://x'", "env://");
    assertRefused(
        Rendezvous.at("env://").environment(Map.of()).rank(5).worldSize(2), "argument rank is '5'");
  }
}
