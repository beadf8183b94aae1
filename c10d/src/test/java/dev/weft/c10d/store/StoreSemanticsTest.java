package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What every store does, whatever it is made of. */
class StoreSemanticsTest {
  private static final Duration SHORT = Duration.ofMillis(150);
  private static final Duration LONG = Duration.ofSeconds(10);

  private final ExecutorService others = Executors.newCachedThreadPool();
  private final List<Store> opened = new ArrayList<>();

  @AfterEach
  void closeEverything() {
    others.shutdownNow();
    opened.forEach(StoreKind::closeAll);
  }

  private Store open(StoreKind kind) {
    Store store = kind.open();
    opened.add(store);
    return store;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  private <T> Future<T> meanwhile(Callable<T> action) {
    return others.submit(action);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void keepsTheLastValueOfAKey(StoreKind kind) {
    var store = open(kind);
    store.set("k", "one");
    store.set("k", "two");
    store.set("empty", "");
    store.set("", "nameless");
    store.set("é中😀/\n", "ü");

    assertThat(store.getString("k")).isEqualTo("two");
    assertThat(store.get("empty")).isEmpty();
    assertThat(store.getString("")).isEqualTo("nameless");
    assertThat(store.getString("é中😀/\n")).isEqualTo("ü");
    assertThat(store.listKeys()).containsExactlyInAnyOrder("k", "empty", "", "é中😀/\n");
    assertThat(store.numKeys()).isEqualTo(4);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void copiesValuesInAndOut(StoreKind kind) {
    var store = open(kind);
    byte[] mine = bytes("abc");
    store.set("k", mine);
    mine[0] = 'x';
    store.get("k")[1] = 'x';

    assertThat(store.getString("k")).isEqualTo("abc");
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void addsToDecimalText(StoreKind kind) {
    var store = open(kind);
    assertThat(store.add("n", 3)).isEqualTo(3);
    assertThat(store.add("n", -10)).isEqualTo(-7);
    assertThat(store.getString("n")).isEqualTo("-7");
    store.set("blank", "  +5");
    assertThat(store.add("blank", 1)).isEqualTo(6);
    store.set("tail", "12abc");
    assertThat(store.add("tail", 1)).isEqualTo(13);
    store.add("max", Long.MAX_VALUE);
    assertThat(store.add("max", 1)).isEqualTo(Long.MIN_VALUE);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void refusesToAddToOtherText(StoreKind kind) {
    var store = open(kind);
    for (String text : List.of("abc", "", "-", "9223372036854775808")) {
      store.set("k", text);
      assertThatThrownBy(() -> store.add("k", 1))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("k'")
          .hasMessageContaining("\"" + text + "\"")
          .hasMessageContaining("integer");
      assertThat(store.getString("k")).isEqualTo(text);
    }
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void handsOutEveryCountOnce(StoreKind kind) throws Exception {
    var store = open(kind);
    Set<Long> seen = ConcurrentHashMap.newKeySet();
    var tasks = new ArrayList<Future<?>>();
    for (int t = 0; t < 4; t++) {
      tasks.add(
          meanwhile(
              () -> {
                for (int i = 0; i < 50; i++) {
                  seen.add(store.add("count", 1));
                }
                return true;
              }));
    }
    for (Future<?> task : tasks) {
      task.get(30, TimeUnit.SECONDS);
    }
    assertThat(seen).hasSize(200).contains(1L, 200L);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void swapsWhatIsExpected(StoreKind kind) {
    var store = open(kind);
    assertThat(store.compareSet("c", "", "one")).isEqualTo("one");
    assertThat(store.compareSet("c", "zzz", "two")).isEqualTo("one");
    assertThat(store.compareSet("c", "one", "two")).isEqualTo("two");
    assertThat(store.getString("c")).isEqualTo("two");
    assertThat(store.compareSet("absent", "expected", "x")).isEqualTo("expected");
    assertThat(store.check(List.of("absent"))).isFalse();
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void appends(StoreKind kind) {
    var store = open(kind);
    store.append("a", "ab");
    store.append("a", "");
    store.append("a", "cd");
    byte[] before = store.get("a");
    store.append("a", "ef");

    assertThat(store.getString("a")).isEqualTo("abcdef");
    assertThat(before).isEqualTo(bytes("abcd"));
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void setsAndGetsSeveral(StoreKind kind) {
    var store = open(kind);
    store.multiSet(List.of("a", "b"), List.of(bytes("A"), bytes("")));
    store.multiSet(List.of(), List.of());

    assertThat(store.multiGet(List.of("b", "a", "a")))
        .containsExactly(bytes(""), bytes("A"), bytes("A"));
    assertThat(store.multiGet(List.of())).isEmpty();
    assertThatThrownBy(() -> store.multiSet(List.of("x", "y"), List.of(bytes("1"))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("2 keys and 1 values");
    assertThat(store.check(List.of("x"))).isFalse();
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void deletes(StoreKind kind) {
    var store = open(kind);
    store.add("k", 5);
    assertThat(store.deleteKey("k")).isTrue();
    assertThat(store.deleteKey("k")).isFalse();
    assertThat(store.check(List.of("k"))).isFalse();
    assertThat(store.numKeys()).isZero();
    assertThat(store.add("k", 5)).isEqualTo(5);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void checksAllKeys(StoreKind kind) {
    var store = open(kind);
    store.set("x", "1");
    assertThat(store.check(List.of("x"))).isTrue();
    assertThat(store.check(List.of("x", "y"))).isFalse();
    assertThat(store.check(List.of())).isTrue();
  }

  /** P46: a wait that fails says which of its keys are missing, where, and after how long. */
  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void aTimedOutWaitNamesTheMissingKeys(StoreKind kind) {
    var store = open(kind);
    store.set("a", "1");
    long start = System.nanoTime();
    assertThatThrownBy(() -> store.waitFor(List.of("a", "b"), SHORT))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("150 ms")
        .hasMessageContaining("still missing: '")
        .hasMessageMatching("(?s).*still missing: '[^']*b'$");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, Duration.ofSeconds(5));
    assertThat(store.getString("a")).isEqualTo("1");

    var brief = store.withTimeout(SHORT);
    assertThatThrownBy(() -> brief.get("b")).isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> brief.multiGet(List.of("a", "b")))
        .isInstanceOf(StoreTimeoutException.class);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void aWaitOfZeroOnlyLooks(StoreKind kind) {
    var store = open(kind);
    store.set("a", "1");
    store.waitFor(List.of("a"), Duration.ZERO);
    store.waitFor(List.of(), Duration.ZERO);
    assertThatThrownBy(() -> store.waitFor(List.of("b"), Duration.ZERO))
        .isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> store.waitFor(List.of("a"), Duration.ofMillis(-1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("timeout");
  }

  /** A thread that waits must not hold up the others that use the same store. */
  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void everyWriteReleasesWhoWaitsForIt(StoreKind kind) throws Exception {
    var store = open(kind);
    List<Runnable> writes =
        List.of(
            () -> store.set("k0", "v"),
            () -> store.add("k1", 1),
            () -> store.append("k2", "v"),
            () -> store.multiSet(List.of("k3"), List.of(bytes("v"))),
            () -> store.compareSet("k4", "", "v"),
            () -> store.queuePush("k5", "v"));
    for (int i = 0; i < writes.size(); i++) {
      String key = "k" + i;
      var started = new CountDownLatch(1);
      var waiter =
          meanwhile(
              () -> {
                started.countDown();
                store.waitFor(List.of(key), LONG);
                return System.nanoTime();
              });
      started.await();
      assertThat(store.check(List.of(key))).isFalse();
      writes.get(i).run();
      waiter.get(5, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void getWaitsForAValue(StoreKind kind) throws Exception {
    var store = open(kind);
    var value = meanwhile(() -> store.getString("late"));
    assertThatThrownBy(() -> value.get(100, TimeUnit.MILLISECONDS))
        .isInstanceOf(java.util.concurrent.TimeoutException.class);
    store.set("late", "here");
    assertThat(value.get(5, TimeUnit.SECONDS)).isEqualTo("here");
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void queuesAreFirstInFirstOutAndApartFromKeys(StoreKind kind) throws Exception {
    var store = open(kind);
    assertThat(store.queueLen("q")).isZero();
    store.queuePush("q", "1");
    store.queuePush("q", "2");
    store.set("q", "key");
    assertThat(store.queueLen("q")).isEqualTo(2);
    assertThat(store.numKeys()).isEqualTo(1);
    assertThat(store.queuePop("q")).isEqualTo(bytes("1"));
    assertThat(store.queuePoll("q")).hasValue(bytes("2"));
    assertThat(store.queuePoll("q")).isEmpty();
    assertThat(store.getString("q")).isEqualTo("key");

    var popped = meanwhile(() -> store.queuePop("late"));
    store.queuePush("late", "x");
    assertThat(popped.get(5, TimeUnit.SECONDS)).isEqualTo(bytes("x"));
    assertThat(store.check(List.of("late"))).isFalse();
    assertThatThrownBy(() -> store.withTimeout(SHORT).queuePop("late"))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("late")
        .hasMessageContaining("150 ms");
    assertThatThrownBy(() -> store.withTimeout(SHORT).queuePop("q"))
        .as("a key of the same name is no element")
        .isInstanceOf(StoreTimeoutException.class);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void eachElementOfAQueueGoesToOneOfThoseWhoWait(StoreKind kind) throws Exception {
    var store = open(kind);
    var pops = new ArrayList<Future<byte[]>>();
    for (int i = 0; i < 4; i++) {
      pops.add(meanwhile(() -> store.queuePop("q")));
    }
    for (int i = 0; i < 4; i++) {
      store.queuePush("q", "e" + i);
    }
    var got = new ArrayList<String>();
    for (Future<byte[]> pop : pops) {
      got.add(new String(pop.get(5, TimeUnit.SECONDS), UTF_8));
    }
    assertThat(got).containsExactlyInAnyOrder("e0", "e1", "e2", "e3");
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void aBarrierOpensWithItsLastCaller(StoreKind kind) throws Exception {
    var store = open(kind);
    store.barrier("solo", 1, SHORT);
    var first = meanwhile(() -> run(() -> store.barrier("pair", 2, LONG)));
    assertThatThrownBy(() -> first.get(100, TimeUnit.MILLISECONDS))
        .isInstanceOf(java.util.concurrent.TimeoutException.class);
    store.barrier("pair", 2, LONG);
    assertThat(first.get(5, TimeUnit.SECONDS)).isTrue();
    store.barrier("pair", 2, SHORT);
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void aBarrierThatDoesNotFillSaysHowManyCame(StoreKind kind) {
    var store = open(kind);
    assertThatThrownBy(() -> store.barrier("b", 3, SHORT))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("b'")
        .hasMessageContaining("150 ms")
        .hasMessageContaining("1 of 3 arrived");
    assertThatThrownBy(() -> store.barrier("b", 0, SHORT))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("worldSize is 0");
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void closingEndsTheWaitsOfOtherThreads(StoreKind kind) throws Exception {
    var store = open(kind);
    var waiter =
        meanwhile(
            () -> {
              store.waitFor(List.of("never"), LONG);
              return true;
            });
    assertThatThrownBy(() -> waiter.get(100, TimeUnit.MILLISECONDS))
        .isInstanceOf(java.util.concurrent.TimeoutException.class);
    StoreKind.closeAll(store);
    StoreKind.closeAll(store);
    assertThatThrownBy(() -> waiter.get(5, TimeUnit.SECONDS))
        .hasCauseInstanceOf(StoreException.class)
        .hasMessageContaining("closed");
    assertThatThrownBy(() -> store.set("k", "v"))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("closed");
  }

  @ParameterizedTest
  @EnumSource(StoreKind.class)
  void anInterruptEndsAWaitAndLeavesTheStoreUsable(StoreKind kind) throws Exception {
    var store = open(kind);
    var flag = new CountDownLatch(1);
    var failure = new ArrayList<Throwable>();
    var waiter =
        new Thread(
            () -> {
              try {
                store.waitFor(List.of("never"), LONG);
              } catch (StoreException e) {
                failure.add(e);
                if (Thread.currentThread().isInterrupted()) {
                  flag.countDown();
                }
              }
            });
    waiter.start();
    while (waiter.getState() == Thread.State.NEW) {
      Thread.onSpinWait();
    }
    waiter.interrupt();
    assertThat(flag.await(5, TimeUnit.SECONDS)).as("interrupt flag kept").isTrue();
    waiter.join(5000);
    assertThat(failure).singleElement().asString().contains("interrupted");
    store.set("k", "v");
    assertThat(store.getString("k")).isEqualTo("v");
  }

  private static boolean run(Runnable action) {
    action.run();
    return true;
  }
}
