package dev.weft.c10d.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.store.FileStore;
import dev.weft.c10d.store.HashStore;
import dev.weft.c10d.store.Store;
import dev.weft.c10d.store.TcpStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Faults at every stage: ranks are killed, stopped, cut off, held up and have their bytes changed,
 * and so is the store's server. All that is left ends within the timeout and five seconds, with an
 * error that names the culprit, and never with a wrong result. The cases run side by side, as they
 * mostly wait; {@code target/faults} has the tables.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class FaultTest {
  private static final int SIZE = 3;
  private static final int VICTIM = 1;
  private static final Duration LIMIT = Stage.TIMEOUT.plusSeconds(5);
  private static final int AT_ONCE = 6;

  /** Coming together may take long on a busy machine. */
  private static final Duration PATIENT = Duration.ofSeconds(60);

  private static final int ATTEMPTS = 3;
  private static final Logger LOG = LoggerFactory.getLogger(FaultTest.class);

  @TempDir static Path folder;
  private final AtomicInteger files = new AtomicInteger();

  private final FaultTable table = new FaultTable();
  private final ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
  private final Map<String, Future<?>> cases = new LinkedHashMap<>();

  /** How the ranks' data move. */
  String transport() {
    return "tcp";
  }

  /** Whether a fault of the network is one for them. */
  boolean concerns(Proxy.Fault fault) {
    return fault != Proxy.Fault.NONE;
  }

  /** Whether a broken connection keeps the stage's data from passing. */
  private boolean dataIsCut(Stage stage) {
    return transport().equals("tcp") || stage == Stage.CONNECT;
  }

  private interface Case {
    void run() throws Exception;
  }

  /**
   * Starts a case. Where several see a fault at once, chance says who tells of it first, and now
   * and then that is one who cannot know the cause: what is expected of the words must come true in
   * one of three attempts. A hang or a wrong result is no matter of words, and comes back in all.
   */
  private void submit(String name, Case body) {
    cases.put(
        name,
        pool.submit(
            () -> {
              for (int attempt = 1; ; attempt++) {
                try {
                  body.run();
                  return null;
                } catch (AssertionError e) {
                  if (attempt == ATTEMPTS) {
                    throw e;
                  }
                  LOG.warn("{}: attempt {} did not end as expected", name, attempt, e);
                }
              }
            }));
  }

  @BeforeAll
  void startAll() {
    for (Stage stage : Stage.values()) {
      for (String signal : new String[] {"KILL", "STOP"}) {
        submit("a rank gets SIG" + signal + " " + stage, () -> signal(signal, stage));
      }
    }
    for (Stage stage : Stage.values()) {
      for (Proxy.Fault fault : Proxy.Fault.values()) {
        if (concerns(fault) && stage != Stage.RENDEZVOUS) {
          submit("a connection has " + fault + " " + stage, () -> network(fault, stage));
        }
      }
    }
    if (!transport().equals("tcp")) {
      return; // the store knows nothing of transports
    }
    for (StoreUse use : StoreUse.values()) {
      for (String signal : new String[] {"KILL", "STOP"}) {
        submit("the store's server gets SIG" + signal + " " + use, () -> server(signal, use));
      }
    }
  }

  @TestFactory
  Stream<DynamicTest> everyFaultIsSurvived() {
    return cases.entrySet().stream()
        .map(c -> DynamicTest.dynamicTest(c.getKey(), () -> unwrap(c.getValue())));
  }

  private static void unwrap(Future<?> done) throws Throwable {
    try {
      Object unused = done.get();
    } catch (java.util.concurrent.ExecutionException e) {
      throw e.getCause();
    }
  }

  @AfterAll
  void writeTable() throws IOException {
    pool.shutdownNow();
    table.write(transport());
  }

  // ---- ranks that are killed or stopped ----

  private void signal(String signal, Stage stage) throws Exception {
    Path file = folder.resolve("store-" + signal + stage.name() + files.incrementAndGet());
    Process victim = start(file.toString(), stage.name(), "" + VICTIM, "" + SIZE);
    List<RankContext> ranks = new ArrayList<>();
    List<Store> stores = new ArrayList<>();
    for (int r = 0; r < SIZE; r++) {
      if (r != VICTIM) {
        Store store = FileStore.open(file, SIZE, PATIENT);
        stores.add(store);
        Duration timeout =
            stage == Stage.RENDEZVOUS || stage == Stage.CONNECT ? Stage.TIMEOUT : null;
        ranks.add(rank(r, store, timeout));
      }
    }
    try (BufferedReader out = reader(victim)) {
      Gate gate = new Gate();
      try (Survivors survivors =
          new Survivors(
              ranks,
              rank -> {
                stage.arrive(rank);
                if (!stage.isLoop()) {
                  gate.await();
                }
                stage.act(rank, VICTIM);
              })) {
        expectLine(out, "there");
        if (stage.isLoop()) {
          Thread.sleep(300); // in the middle of something, wherever that is
        }
        long at = System.nanoTime();
        signal(signal, victim);
        gate.open();
        check("SIG" + signal, stage, survivors.await(60), at, isExpected(signal, stage));
      }
    } finally {
      victim.destroyForcibly();
      stores.forEach(Store::close);
    }
  }

  private static Expectation isExpected(String signal, Stage stage) {
    if (stage == Stage.DESTROY) {
      return Expectation.NOTHING;
    }
    return Expectation.CULPRIT;
  }

  // ---- the network ----

  /** Rank 1's connections go through proxies: its own to rank 0, and rank 2's to it. */
  private void network(Proxy.Fault fault, Stage stage) throws Exception {
    HashStore shared = new HashStore();
    Map<String, Proxy> proxies = new ConcurrentHashMap<>();
    Proxy.Fault first = stage == Stage.CONNECT ? fault : Proxy.Fault.NONE;
    List<RankContext> ranks = new ArrayList<>();
    for (int r = 0; r < SIZE; r++) {
      ranks.add(
          rank(
              r,
              rerouting(shared, r, proxies, first),
              stage == Stage.CONNECT ? Stage.TIMEOUT : null));
    }
    Gate gate = new Gate();
    java.util.concurrent.CountDownLatch there = new java.util.concurrent.CountDownLatch(SIZE);
    try (Survivors survivors =
        new Survivors(
            ranks,
            rank -> {
              stage.arrive(rank);
              there.countDown();
              if (!stage.isLoop()) {
                gate.await();
              }
              if (stage == Stage.SEND || stage == Stage.RECEIVE) {
                exchange(stage, rank);
              } else {
                stage.act(rank, VICTIM);
              }
            })) {
      there.await();
      if (stage.isLoop()) {
        Thread.sleep(300);
      }
      boolean harmless = fault == Proxy.Fault.DELAY || stage == Stage.DESTROY;
      if (stage.isLoop() && fault == Proxy.Fault.DELAY) {
        // Loops end only by a fault: one that is survived is followed by one that is not.
        proxies.values().forEach(p -> p.inject(fault));
        Thread.sleep(1_500);
      }
      long at = System.nanoTime();
      if (stage != Stage.CONNECT) {
        Proxy.Fault then =
            stage.isLoop() && fault == Proxy.Fault.DELAY ? Proxy.Fault.DISCONNECT : fault;
        proxies.values().forEach(p -> p.inject(then));
      }
      gate.open();
      check(
          fault.name().toLowerCase(java.util.Locale.ROOT),
          stage,
          survivors.await(60),
          at,
          harmless && !stage.isLoop()
              ? Expectation.NOTHING
              // Where the data take a way that works, it may end before anything is noticed.
              : stage == Stage.MONITORED_BARRIER || (!stage.isLoop() && !dataIsCut(stage))
                  ? Expectation.MAYBE
                  // What was not changed may have been enough for one of them.
                  : fault == Proxy.Fault.CORRUPT ? Expectation.SOME : Expectation.CULPRIT);
    } finally {
      proxies.values().forEach(Proxy::close);
    }
  }

  /** Rank 1 takes part, too: the fault is between it and the others. */
  private static void exchange(Stage stage, RankContext rank) {
    boolean sends = (rank.rank() == VICTIM) != (stage == Stage.SEND);
    int n = 200_000;
    for (int peer = 0; peer < SIZE; peer++) {
      if (peer == rank.rank() || (peer != VICTIM && rank.rank() != VICTIM)) {
        continue;
      }
      float[] values = new float[n];
      if (sends) {
        java.util.Arrays.fill(values, rank.rank() + 0.5f);
        rank.world().send(dev.weft.tensor.Tensor.of(values), peer, 7, Stage.BRIEF).await();
      } else {
        var t = dev.weft.tensor.Tensor.of(values);
        rank.world().recv(t, peer, 7, Stage.BRIEF).await();
        float[] got = t.toFloatArray();
        for (float f : got) {
          if (f != peer + 0.5f) {
            throw new AssertionError("a wrong result: " + f);
          }
        }
      }
    }
  }

  /** A store that shows rank 1 and those who connect to it the way through a proxy. */
  private static Store rerouting(
      Store store, int rank, Map<String, Proxy> proxies, Proxy.Fault first) {
    return (Store)
        java.lang.reflect.Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (self, method, arguments) -> {
              try {
                Object result = method.invoke(store, arguments);
                if (result instanceof Store s) {
                  return rerouting(s, rank, proxies, first);
                }
                String wanted = "weft/host/" + (rank - 1);
                return rank > 0 && method.getName().equals("get") && wanted.equals(arguments[0])
                    ? reroute((byte[]) result, rank + " to " + (rank - 1), proxies, first)
                    : result;
              } catch (java.lang.reflect.InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static byte[] reroute(
      byte[] value, String way, Map<String, Proxy> proxies, Proxy.Fault first) throws IOException {
    String[] told = new String(value, StandardCharsets.UTF_8).split(" ", -1);
    Proxy proxy = new Proxy(InetAddress.getByName(told[0]), Integer.parseInt(told[1]));
    proxies.put(way, proxy);
    proxy.inject(first);
    return ("127.0.0.1 " + proxy.port() + " " + told[2]).getBytes(StandardCharsets.UTF_8);
  }

  // ---- the store's server ----

  /** What clients do when the server is gone. */
  private enum StoreUse {
    CONNECTING("while clients connect"),
    SETTING("while clients set"),
    WAITING("while clients wait for a key"),
    MEETING("while the ranks meet"),
    MONITORED_BARRIER("at a monitored barrier"),
    LEAVING("while the world is left");

    private final String words;

    StoreUse(String words) {
      this.words = words;
    }

    @Override
    public String toString() {
      return words;
    }
  }

  private void server(String signal, StoreUse use) throws Exception {
    Process victim = start("server");
    try (BufferedReader out = reader(victim)) {
      String line = String.valueOf(out.readLine());
      assertThat(line).startsWith("port ");
      int port = Integer.parseInt(line.substring(5));
      if (use == StoreUse.CONNECTING) {
        signal(signal, victim);
        Thread.sleep(200); // until its port is closed, where it is
      }
      long begun = System.nanoTime();
      List<RankContext> ranks = new ArrayList<>();
      List<Store> stores = new ArrayList<>();
      Gate gate = new Gate();
      java.util.concurrent.CountDownLatch there = new java.util.concurrent.CountDownLatch(2);
      Throwable connecting = null;
      try {
        for (int r = 0; r < 2; r++) {
          Store store = TcpStore.at("127.0.0.1", port).timeout(Stage.TIMEOUT).open();
          stores.add(store);
          ranks.add(rank(r, store, Stage.TIMEOUT));
        }
      } catch (DistributedException e) {
        connecting = e;
      }
      if (use == StoreUse.CONNECTING) {
        assertThat(connecting).isInstanceOf(DistributedException.class);
        check(
            "SIG" + signal + " of the store's server",
            use,
            List.of(new Survivors.Ending(0, connecting, System.nanoTime())),
            begun,
            Expectation.server(port));
        return;
      }
      assertThat(connecting).isNull();
      try (Survivors survivors =
          new Survivors(
              ranks,
              rank -> {
                boolean connects = use == StoreUse.MONITORED_BARRIER || use == StoreUse.LEAVING;
                if (connects) {
                  ProcessRanks.connect(rank);
                  Stage.sum(rank.world(), 10, CollectiveOptions.SYNC);
                }
                there.countDown();
                gate.await();
                use(use, rank);
              })) {
        there.await();
        long at = System.nanoTime();
        signal(signal, victim);
        gate.open();
        check(
            "SIG" + signal + " of the store's server",
            use,
            survivors.await(60),
            at,
            use == StoreUse.LEAVING ? Expectation.NOTHING : Expectation.server(port));
      } finally {
        stores.forEach(Store::close);
      }
    } finally {
      victim.destroyForcibly();
    }
  }

  private static void use(StoreUse use, RankContext rank) {
    switch (use) {
      case CONNECTING -> throw new IllegalStateException("done before");
      case SETTING -> {
        for (int i = 0; i < 1_000_000; i++) {
          rank.store().set("key", "value " + i);
        }
      }
      case WAITING -> rank.store().waitFor(List.of("never"));
      case MEETING -> ProcessRanks.connect(rank);
      case MONITORED_BARRIER -> rank.world().monitoredBarrier(Stage.TIMEOUT, true);
      case LEAVING -> ProcessRanks.leave(rank);
    }
  }

  // ---- what is common ----

  /** Who has to be named; null for no error at all. */
  private record Expectation(
      @org.jspecify.annotations.Nullable String regex, boolean must, boolean some) {
    static final Expectation NOTHING = new Expectation(null, true, false);

    /** Those cut off from rank 1 name it; rank 1 names one of the others. */
    static final Expectation CULPRIT = new Expectation("", true, false);

    /** The same, if there is an error. */
    static final Expectation MAYBE = new Expectation("", false, false);

    /** The same, on one rank at least. */
    static final Expectation SOME = new Expectation("", false, true);

    static Expectation server(int port) {
      return new Expectation(
          "127\\.0\\.0\\.1:" + port + "|rank 0, which counts the others", true, false);
    }

    String regexFor(int rank) {
      return regex == null || !regex.isEmpty()
          ? String.valueOf(regex)
          : rank == VICTIM
              ? "rank [02]\\b|ranks \\[(0|2|0, 2)\\] (did|to come)"
              : "rank 1\\b|ranks \\[(1|1, 2|0, 1)\\] (did|to come)";
    }
  }

  private void check(
      String fault, Object stage, List<Survivors.Ending> endings, long at, Expectation expected) {
    StringBuilder words = new StringBuilder();
    double longest = 0;
    for (Survivors.Ending e : endings) {
      double seconds = (e.at() - at) / 1e9;
      longest = Math.max(longest, seconds);
      Throwable failure = e.failure();
      if (failure == null && !expected.must()) {
        continue;
      }
      if (expected.regex() == null) {
        assertThat(failure).as("rank %s, %s, %s", e.rank(), fault, stage).isNull();
      } else {
        assertThat(failure)
            .as("rank %s, %s, %s", e.rank(), fault, stage)
            .isInstanceOf(DistributedException.class);
        String text = String.valueOf(failure == null ? null : failure.getMessage());
        assertThat(text).containsPattern(expected.regexFor(e.rank()));
        words.append(words.isEmpty() ? "" : "; ").append("rank ").append(e.rank()).append(": ");
        words.append(failure == null ? "" : failure.getClass().getSimpleName());
      }
      assertThat(seconds)
          .as("rank %s ended %.1f s after %s %s: %s", e.rank(), seconds, fault, stage, failure)
          .isLessThan(LIMIT.toMillis() / 1000.0);
    }
    if (expected.some()) {
      assertThat(words.toString()).as("%s, %s: who noticed", fault, stage).isNotEmpty();
    }
    table.add(fault, stage, words.isEmpty() ? "right results" : words.toString(), longest);
  }

  private RankContext rank(
      int rank, Store store, @org.jspecify.annotations.Nullable Duration timeout) {
    return ProcessRanks.rank(
        rank, storeSize(store), store, timeout == null ? PATIENT : timeout, transport());
  }

  private static int storeSize(Store store) {
    return store instanceof TcpStore ? 2 : SIZE;
  }

  private Process start(String... arguments) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx192m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                Victim.class.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("WEFT_HOST_TRANSPORT", transport());
    return builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  private static BufferedReader reader(Process process) {
    return new BufferedReader(
        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  private static void expectLine(BufferedReader out, String expected) throws IOException {
    String line = out.readLine();
    while (line != null && !line.equals(expected)) {
      line = out.readLine();
    }
    assertThat(line).isEqualTo(expected);
  }

  private static void signal(String signal, Process process) throws Exception {
    Process kill =
        new ProcessBuilder("kill", "-" + signal, String.valueOf(process.pid())).inheritIO().start();
    assertThat(kill.waitFor()).isZero();
  }

  /** Opens once. */
  private static final class Gate {
    private final java.util.concurrent.CountDownLatch latch =
        new java.util.concurrent.CountDownLatch(1);

    void open() {
      latch.countDown();
    }

    void await() throws InterruptedException {
      latch.await();
    }
  }
}
