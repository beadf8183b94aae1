package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A store over TCP, whose server is hosted by one of its users. Any number of threads may use one
 * object at once: each call has a connection for itself. Both ends speak PyTorch's wire protocol,
 * so either may be PyTorch's.
 *
 * <p>Keys may have 8191 bytes, values 8 MiB, a call 131,072 keys; more is refused with an {@link
 * IllegalArgumentException}. A server that went away is reported as that, never as the failure of a
 * peer.
 *
 * <pre>{@code
 * var server = TcpStore.at("10.0.0.1", 0).server(true).worldSize(4).waitForWorkers(false).open();
 * var client = TcpStore.at("10.0.0.1", server.port()).worldSize(4).open();
 * }</pre>
 */
public final class TcpStore implements Store {
  /** How long waits last that are given no timeout, as in PyTorch. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  private static final long JOIN_POLL_MILLIS = 10;
  private static final long LAST_POP_PAUSE_MILLIS = 50;

  private final StoreClient client;
  private final @Nullable TcpStoreServer server;
  private final int port;
  private final Duration timeout;
  private final boolean owner;
  private final AtomicBoolean closed = new AtomicBoolean();

  TcpStore(
      StoreClient client,
      @Nullable TcpStoreServer server,
      int port,
      Duration timeout,
      boolean owner) {
    this.client = client;
    this.server = server;
    this.port = port;
    this.timeout = Deadline.after(timeout).timeout();
    this.owner = owner;
  }

  /**
   * Starts the description of a store.
   *
   * @param host the master address: where clients find the server
   * @param port the server's port; the server may take 0 for a free one
   * @return a builder
   */
  public static TcpStoreBuilder at(String host, int port) {
    return new TcpStoreBuilder(host, port);
  }

  /** Counts this user in. */
  void join(Deadline deadline) {
    client.call(
        "join",
        deadline,
        c -> {
          c.send(WireRequest.of(Query.ADD).rawKey(Query.INIT_KEY).number(1), deadline);
          return c.readNumber(deadline);
        });
  }

  /**
   * Waits until that many users have counted themselves in, as clients that wait for workers do.
   *
   * @param worldSize how many
   * @param timeout how long at most
   * @throws StoreTimeoutException if fewer have come then; the message says how many
   */
  public void awaitWorkers(int worldSize, Duration timeout) {
    Texts.checkWorldSize(worldSize);
    awaitWorkers(worldSize, Deadline.after(timeout));
  }

  void awaitWorkers(int worldSize, Deadline deadline) {
    while (true) {
      // The last question may be asked just before the end; its answer still counts.
      Deadline answer = Exchanges.answerTime(deadline);
      long joined =
          client.call(
              "wait for workers",
              answer,
              c -> {
                c.send(WireRequest.of(Query.ADD).rawKey(Query.INIT_KEY).number(0), answer);
                return c.readNumber(answer);
              });
      if (joined >= worldSize) {
        return;
      }
      if (deadline.hasPassed()) {
        throw new StoreTimeoutException(
            "%d of %d workers joined the store at %s within %s"
                .formatted(joined, worldSize, client.endpoint(), deadline));
      }
      pause(JOIN_POLL_MILLIS);
    }
  }

  /**
   * Returns the port of the server.
   *
   * @return the port, the one that was picked if 0 was asked for
   */
  public int port() {
    return port;
  }

  @Override
  public Optional<InetAddress> localAddress() {
    return Optional.of(
        client.call("localAddress", Deadline.after(timeout), Connection::localAddress));
  }

  @Override
  public void set(String key, byte[] value) {
    write("set", key, WireRequest.of(Query.SET).key(key).value(key, value));
  }

  @Override
  public void append(String key, byte[] value) {
    write("append to", key, WireRequest.of(Query.APPEND).key(key).value(key, value));
  }

  @Override
  public void queuePush(String key, byte[] value) {
    write("queuePush to", key, WireRequest.of(Query.QUEUE_PUSH).key(key).value(key, value));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    Texts.checkSameLength(keys, values);
    var request = WireRequest.of(Query.MULTI_SET).count(keys.size());
    for (int i = 0; i < keys.size(); i++) {
      request.key(keys.get(i)).value(keys.get(i), values.get(i));
    }
    write("multiSet", "", request);
  }

  /**
   * Sends a request that has no answer, and a ping behind it: once that is answered the write is
   * done, whichever connection the next call takes, and what went wrong is reported here.
   */
  private void write(String verb, String key, WireRequest request) {
    var deadline = Deadline.after(timeout);
    client.call(
        verb + " '" + Texts.brief(key) + "'",
        deadline,
        c -> {
          c.send(request.query(Query.PING).word(Query.MAGIC), deadline);
          return c.readWord(deadline);
        });
  }

  @Override
  public byte[] get(String key) {
    return multiGet(List.of(key)).get(0);
  }

  @Override
  public List<byte[]> multiGet(List<String> keys) {
    var deadline = Deadline.after(timeout);
    return client.call(
        "get " + Texts.brief(keys),
        deadline,
        c -> {
          Exchanges.awaitKeys(c, keys, deadline, this);
          var reading = Exchanges.answerTime(deadline);
          c.send(WireRequest.of(Query.MULTI_GET).keys(keys), reading);
          var values = new ArrayList<byte[]>(keys.size());
          for (int i = 0; i < keys.size(); i++) {
            values.add(c.readValue(reading));
          }
          return values;
        });
  }

  @Override
  public void waitFor(List<String> keys, Duration timeout) {
    var deadline = Deadline.after(timeout);
    client.call(
        "wait for " + Texts.brief(keys),
        deadline,
        c -> {
          Exchanges.awaitKeys(c, keys, deadline, this);
          return true;
        });
  }

  @Override
  public boolean check(List<String> keys) {
    var deadline = Deadline.after(timeout);
    return client.<Boolean>call(
        "check " + Texts.brief(keys),
        deadline,
        c -> {
          c.send(WireRequest.of(Query.CHECK).keys(keys), deadline);
          return c.readByte(deadline) == Query.READY;
        });
  }

  @Override
  public long add(String key, long delta) {
    var request = WireRequest.of(Query.ADD).key(key).number(delta);
    try {
      return number("add to '" + Texts.brief(key) + "'", request);
    } catch (StoreClient.ConnectionLostException e) {
      throw notANumber(key).orElse(e);
    }
  }

  /** A server drops who adds to text: says so if that is why. */
  private Optional<StoreException> notANumber(String key) {
    var deadline = Deadline.after(Exchanges.ANSWER_TIME);
    byte[] value =
        client.call(
            "get '" + Texts.brief(key) + "'",
            deadline,
            c -> {
              c.send(WireRequest.of(Query.GET).key(key), deadline);
              return c.readValue(deadline);
            });
    try {
      Table.parseNumber(new Table.Value(value));
      return Optional.empty();
    } catch (NumberFormatException e) {
      return Optional.of(new StoreException(TableStore.notANumber(this, key, value), e));
    }
  }

  @Override
  public byte[] compareSet(String key, byte[] expected, byte[] desired) {
    var request =
        WireRequest.of(Query.COMPARE_SET).key(key).value(key, expected).value(key, desired);
    var deadline = Deadline.after(timeout);
    return client.call(
        "compareSet '" + Texts.brief(key) + "'",
        deadline,
        c -> {
          c.send(request, deadline);
          return c.readValue(deadline);
        });
  }

  @Override
  public boolean deleteKey(String key) {
    return number("delete '" + Texts.brief(key) + "'", WireRequest.of(Query.DELETE_KEY).key(key))
        > 0;
  }

  @Override
  public long numKeys() {
    return number("numKeys", WireRequest.of(Query.GET_NUM_KEYS));
  }

  @Override
  public long queueLen(String key) {
    return number(
        "queueLen of '" + Texts.brief(key) + "'", WireRequest.of(Query.QUEUE_LEN).key(key));
  }

  private long number(String what, WireRequest request) {
    var deadline = Deadline.after(timeout);
    return client.<Long>call(
        what,
        deadline,
        c -> {
          c.send(request, deadline);
          return c.readNumber(deadline);
        });
  }

  @Override
  public List<String> listKeys() {
    var deadline = Deadline.after(timeout);
    return client.call(
        "listKeys",
        deadline,
        c -> {
          c.send(WireRequest.of(Query.LIST_KEYS), deadline);
          long count = c.readNumber(deadline);
          var keys = new ArrayList<String>();
          for (long i = 0; i < count; i++) {
            String name = new String(c.readValue(deadline), UTF_8);
            if (name.startsWith(Query.USER_PREFIX)) {
              keys.add(name.substring(Query.USER_PREFIX.length()));
            }
          }
          return keys;
        });
  }

  @Override
  public byte[] queuePop(String key) {
    var deadline = Deadline.after(timeout);
    long pause = 1;
    while (true) {
      Optional<byte[]> element = popOnce(key, deadline);
      if (element.isPresent()) {
        return element.get();
      }
      // Somebody else was faster, or a key of the same name satisfied the wait.
      if (deadline.hasPassed()) {
        throw new StoreTimeoutException(TableStore.emptyQueue(this, key, deadline));
      }
      pause(Math.min(pause, deadline.remainingMillis()));
      pause = Math.min(LAST_POP_PAUSE_MILLIS, pause * 2);
    }
  }

  private Optional<byte[]> popOnce(String key, Deadline deadline) {
    return client.call(
        "queuePop of '" + Texts.brief(key) + "'",
        deadline,
        c -> {
          if (deadline.hasPassed()
              || Exchanges.awaitRelease(
                  c, WireRequest.of(Query.WAIT).count(1).key(key), deadline)) {
            return Exchanges.pop(c, key, Exchanges.answerTime(deadline));
          }
          return Optional.empty();
        });
  }

  @Override
  public Optional<byte[]> queuePoll(String key) {
    var deadline = Deadline.after(timeout);
    return client.call(
        "queuePoll of '" + Texts.brief(key) + "'", deadline, c -> Exchanges.pop(c, key, deadline));
  }

  @Override
  public void barrier(String key, int worldSize, Duration timeout) {
    Texts.checkWorldSize(worldSize);
    var deadline = Deadline.after(timeout);
    String what = "barrier '" + Texts.brief(key) + "'";
    try {
      client.call(
          what,
          deadline,
          c -> {
            if (Exchanges.awaitRelease(
                c, WireRequest.of(Query.BARRIER).key(key).number(worldSize), deadline)) {
              return true;
            }
            var reading = Exchanges.answerTime(deadline);
            c.send(WireRequest.of(Query.GET).key(key), reading);
            throw new StoreTimeoutException(
                "%s timed out after %s in %s: %s of %d arrived"
                    .formatted(what, deadline, this, Texts.brief(c.readValue(reading)), worldSize));
          });
    } catch (StoreClient.ConnectionLostException e) {
      throw notANumber(key).orElse(e);
    }
  }

  @Override
  public Duration timeout() {
    return timeout;
  }

  @Override
  public Store withTimeout(Duration timeout) {
    return new TcpStore(client, server, port, timeout, false);
  }

  /**
   * Closes the connections and, where this store hosts it, the server: all clients lose their data
   * then.
   */
  @Override
  public void close() {
    if (!owner || !closed.compareAndSet(false, true)) {
      return;
    }
    client.close();
    if (server != null) {
      server.close();
    }
  }

  @Override
  public String toString() {
    return "the store at " + client.endpoint();
  }

  private void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while waiting in " + this, e);
    }
  }
}
