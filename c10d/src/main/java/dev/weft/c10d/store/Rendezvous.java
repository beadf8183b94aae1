package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.base.Splitter;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.RendezvousException;
import dev.weft.c10d.StoreTimeoutException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Where the ranks of a world meet: a store, and who this rank is. Made from a URL of one of three
 * kinds, as in PyTorch:
 *
 * <ul>
 *   <li>{@code env://}: {@code MASTER_ADDR}, {@code MASTER_PORT}, {@code RANK} and {@code
 *       WORLD_SIZE} say the rest. With {@code TORCHELASTIC_USE_AGENT_STORE=True} the launcher hosts
 *       the store, otherwise rank 0 does.
 *   <li>{@code tcp://host:port?rank=R&world_size=N}: rank 0 hosts the store.
 *   <li>{@code file:///path?rank=R&world_size=N}: the store is a file that is not there yet.
 * </ul>
 *
 * <p>Immutable; safe for threads.
 */
public final class Rendezvous implements AutoCloseable {
  private static final String KINDS = "env://, tcp://host:port or file:///path";
  private static final Set<String> TRUE = Set.of("1", "y", "yes", "t", "true");
  private static final Set<String> FALSE = Set.of("0", "n", "no", "f", "false", "");
  private static final String JOINED = "weft/joined/";

  private final Store store;
  private final Store owned;
  private final int rank;
  private final int worldSize;

  private Rendezvous(Store store, Store owned, int rank, int worldSize) {
    this.store = store;
    this.owned = owned;
    this.rank = rank;
    this.worldSize = worldSize;
  }

  /**
   * Returns where the ranks met.
   *
   * @return the store; closing this object closes it
   */
  public Store store() {
    return store;
  }

  /**
   * Returns who this rank is.
   *
   * @return its number, from 0
   */
  public int rank() {
    return rank;
  }

  /**
   * Returns how many ranks there are.
   *
   * @return the world size
   */
  public int worldSize() {
    return worldSize;
  }

  /** Closes the store, with the connections below it. */
  @Override
  public void close() {
    owned.close();
  }

  /**
   * Starts a rendezvous.
   *
   * @param url one of the three kinds
   * @return a builder
   */
  public static Builder at(String url) {
    return new Builder(url);
  }

  /** Says what the URL does not, then {@link #join() joins}. Not thread-safe. */
  public static final class Builder {
    private final URI url;
    private final Map<String, String> query;
    private Map<String, String> environment = System.getenv();
    private @Nullable Integer rank;
    private @Nullable Integer worldSize;
    private Duration timeout = TcpStore.DEFAULT_TIMEOUT;

    private Builder(String url) {
      try {
        // A URI needs something behind the slashes.
        this.url = new URI(url.startsWith("env://") ? "env:///" + url.substring(6) : url);
      } catch (URISyntaxException e) {
        throw new IllegalArgumentException(expected("url", url, KINDS), e);
      }
      this.query = parseQuery(url, this.url.getRawQuery());
    }

    /**
     * Sets the rank, which wins over the URL and the environment.
     *
     * @param rank 0 or more
     * @return this
     */
    public Builder rank(int rank) {
      this.rank = rank;
      return this;
    }

    /**
     * Sets the world size, which wins over the URL and the environment.
     *
     * @param worldSize 1 or more
     * @return this
     */
    public Builder worldSize(int worldSize) {
      this.worldSize = worldSize;
      return this;
    }

    /**
     * Sets the limit of the whole rendezvous, and of the store's waits afterwards. Five minutes by
     * default.
     *
     * @param timeout zero or more
     * @return this
     */
    public Builder timeout(Duration timeout) {
      this.timeout = Deadline.after(timeout).timeout();
      return this;
    }

    /**
     * Sets the environment to read instead of the process's own.
     *
     * @param environment names and values
     * @return this
     */
    public Builder environment(Map<String, String> environment) {
      this.environment = Map.copyOf(environment);
      return this;
    }

    /**
     * Meets the others.
     *
     * @return the store and this rank's place
     * @throws IllegalArgumentException if the URL, a variable or an argument is missing or makes no
     *     sense
     * @throws RendezvousException if not all ranks come in time
     */
    public Rendezvous join() {
      var deadline = Deadline.after(timeout);
      String scheme = url.getScheme() == null ? "" : url.getScheme();
      return switch (scheme) {
        case "env" -> env(deadline);
        case "tcp" -> tcp(deadline);
        case "file" -> file();
        default -> throw new IllegalArgumentException(expected("url", url.toString(), KINDS));
      };
    }

    private Rendezvous env(Deadline deadline) {
      int size = place("world_size", "WORLD_SIZE", worldSize, 1, Integer.MAX_VALUE);
      int self = place("rank", "RANK", rank, 0, size - 1);
      String host = variable("MASTER_ADDR", "the host name or address of the store");
      int port =
          integer("environment variable MASTER_PORT", variable("MASTER_PORT", "a port"), 0, 65_535);
      if (!flag("TORCHELASTIC_USE_AGENT_STORE")) {
        return meet(host, port, self, size, deadline);
      }
      var agent = TcpStore.at(host, port).worldSize(size).timeout(timeout).open(deadline);
      // The launcher's store outlives a restart: each attempt has keys of its own, as under
      // torchrun.
      String attempt = environment.getOrDefault("TORCHELASTIC_RESTART_COUNT", "0");
      return new Rendezvous(
          new PrefixStore("/worker/attempt_" + attempt, agent), agent, self, size);
    }

    private Rendezvous tcp(Deadline deadline) {
      String host = url.getHost();
      if (host == null || url.getPort() < 0) {
        throw new IllegalArgumentException(
            expected(
                "url",
                url.toString(),
                "a host and a port, as in tcp://host:29500?rank=0&world_size=2"));
      }
      int size = place("world_size", null, worldSize, 1, Integer.MAX_VALUE);
      int self = place("rank", null, rank, 0, size - 1);
      return meet(host.replaceAll("^\\[|]$", ""), url.getPort(), self, size, deadline);
    }

    private Rendezvous meet(String host, int port, int self, int size, Deadline deadline) {
      var store =
          TcpStore.at(host, port)
              .server(self == 0)
              .multiTenant(true)
              .waitForWorkers(false)
              .timeout(timeout)
              .open(deadline);
      boolean done = false;
      try {
        store.set(JOINED + self, "");
        store.join(deadline);
        if (self == 0) {
          store.awaitWorkers(size, deadline);
        }
        done = true;
        return new Rendezvous(store, store, self, size);
      } catch (StoreTimeoutException e) {
        throw new RendezvousException(
            "rank %d of %d: %s; no word from %s"
                .formatted(self, size, e.getMessage(), missing(store, size)),
            e);
      } finally {
        if (!done) {
          store.close();
        }
      }
    }

    private static String missing(Store store, int size) {
      List<Integer> ranks =
          IntStream.range(0, size).filter(r -> !store.check(List.of(JOINED + r))).boxed().toList();
      return ranks.size() == 1 ? "rank " + ranks.get(0) : "ranks " + ranks;
    }

    private Rendezvous file() {
      String path = url.getPath();
      if (path == null || path.isEmpty() || url.getAuthority() != null) {
        throw new IllegalArgumentException(
            expected(
                "url", url.toString(), "an absolute path, as in file:///path?rank=0&world_size=2"));
      }
      int size = place("world_size", null, worldSize, 1, Integer.MAX_VALUE);
      int self = place("rank", null, rank, 0, size - 1);
      var store = FileStore.open(Path.of(path), size, timeout);
      if (store.add(JOINED + self, 1) > 1) {
        store.close();
        throw new RendezvousException(
            "rank %d has met others in %s before: the file is left from another run, or two processes have this rank"
                .formatted(self, path));
      }
      return new Rendezvous(store, store, self, size);
    }

    /** Finds the rank or the world size: the argument, else the URL, else the variable. */
    private int place(
        String parameter, @Nullable String variable, @Nullable Integer argument, int min, int max) {
      if (argument != null) {
        return integer("argument " + parameter, argument.toString(), min, max);
      }
      String inUrl = query.get(parameter);
      if (inUrl != null) {
        return integer("parameter " + parameter + " of " + url, inUrl, min, max);
      }
      if (variable == null) {
        throw new IllegalArgumentException(
            "parameter %s of %s is missing; expected an integer of %d or more, there or as an argument"
                .formatted(parameter, url, min));
      }
      return integer(
          "environment variable " + variable, variable(variable, "an integer"), min, max);
    }

    private String variable(String name, String what) {
      String value = environment.get(name);
      if (value == null || value.isBlank()) {
        throw new IllegalArgumentException(
            "environment variable %s is %s; env:// expected %s"
                .formatted(name, value == null ? "not set" : "empty", what));
      }
      return value.trim();
    }

    private boolean flag(String name) {
      String value = environment.getOrDefault(name, "false").trim().toLowerCase(Locale.ROOT);
      if (TRUE.contains(value)) {
        return true;
      }
      if (FALSE.contains(value)) {
        return false;
      }
      throw new IllegalArgumentException(
          expected("environment variable " + name, value, "true or false"));
    }
  }

  private static int integer(String what, String value, int min, int max) {
    try {
      int number = Integer.parseInt(value.trim());
      if (number >= min && number <= max) {
        return number;
      }
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(expected(what, value, range(min, max)), e);
    }
    throw new IllegalArgumentException(expected(what, value, range(min, max)));
  }

  private static String range(int min, int max) {
    return max == Integer.MAX_VALUE
        ? "an integer of " + min + " or more"
        : "an integer from " + min + " to " + max;
  }

  private static String expected(String what, String value, String expected) {
    return what + " is '" + value + "'; expected " + expected;
  }

  private static Map<String, String> parseQuery(String url, @Nullable String raw) {
    var result = new HashMap<String, String>();
    if (raw == null || raw.isEmpty()) {
      return result;
    }
    for (String part : Splitter.on('&').split(raw)) {
      int equals = part.indexOf('=');
      if (equals < 1) {
        throw new IllegalArgumentException(
            expected("url", url, "parameters of the form name=value"));
      }
      result.put(part.substring(0, equals), URLDecoder.decode(part.substring(equals + 1), UTF_8));
    }
    return result;
  }
}
