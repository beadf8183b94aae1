package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * The state of a run in the agents' store. A change replaces exactly the state that it was computed
 * from, so none is lost. Thread-safe.
 */
final class Ledger {
  private static final String STATE = "state";
  private static final String BEAT = "beat/";
  private static final String CHANGE = "change/";
  private static final String LEFT = "left/";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** How many notices of changes stay, for agents that look late. */
  private static final int KEPT_CHANGES = 16;

  private final Store store;
  private final String self;

  Ledger(Store store, String self) {
    this.store = store;
    this.self = self;
  }

  /** The state, made by whoever looks first. */
  RunState open(Settings settings) {
    String first = text(RunState.first(settings).written(self));
    return parse(store.compareSet(STATE, "", first));
  }

  RunState read() {
    return parse(store.getString(STATE));
  }

  /** Applies a transition to whatever the state is by then; returns the state afterwards. */
  RunState change(UnaryOperator<RunState> transition) {
    String seen = store.getString(STATE);
    while (true) {
      RunState present = parse(seen);
      RunState next = transition.apply(present);
      if (next.equals(present)) {
        return present;
      }
      RunState written = next.written(self);
      String text = text(written);
      String now = new String(compareSet(seen, text), UTF_8);
      if (now.equals(text)) {
        announce(written.version());
        return written;
      }
      seen = now;
    }
  }

  static RunState parse(String text) {
    try {
      return JSON.readValue(text, RunState.class);
    } catch (JsonProcessingException e) {
      throw new DistributedException(
          "the state of the run cannot be read; another program, or another version of Weft, uses"
              + " this rendezvous id: "
              + text.substring(0, Math.min(200, text.length())),
          e);
    }
  }

  static String text(RunState state) {
    try {
      return JSON.writeValueAsString(state);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a state that is no JSON: " + state, e);
    }
  }

  private byte[] compareSet(String seen, String text) {
    return store.compareSet(STATE, seen.getBytes(UTF_8), text.getBytes(UTF_8));
  }

  private void announce(long version) {
    store.set(CHANGE + version, "1");
    boolean unused = store.deleteKey(CHANGE + (version - KEPT_CHANGES));
  }

  /** Waits until a state newer than that one is there, or the time is over. */
  void awaitChange(long version, Duration timeout) {
    try {
      store.waitFor(List.of(CHANGE + (version + 1)), timeout);
    } catch (StoreTimeoutException e) {
      return; // the caller reads the state in any case
    }
  }

  /** Shows that this agent lives. */
  void beat() {
    long unused = store.add(BEAT + self, 1);
  }

  /** The heartbeats of agents, all of which have shown one. */
  Map<String, Long> beats(Set<String> agents) {
    List<String> ids = List.copyOf(agents);
    var counts = new LinkedHashMap<String, Long>();
    if (ids.isEmpty()) {
      return counts;
    }
    List<byte[]> values = store.multiGet(ids.stream().map(id -> BEAT + id).toList());
    for (int i = 0; i < ids.size(); i++) {
      counts.put(ids.get(i), Long.parseLong(new String(values.get(i), UTF_8)));
    }
    return counts;
  }

  /** Says that this agent needs the store no more. */
  void leave() {
    store.set(LEFT + self, "1");
  }

  /** Waits until other agents need the store no more; returns those that still may. */
  List<String> awaitLeft(Set<String> others, Duration timeout) {
    var missing = new ArrayList<>(others);
    try {
      store.waitFor(missing.stream().map(id -> LEFT + id).toList(), timeout);
      missing.clear();
    } catch (StoreTimeoutException e) {
      missing.removeIf(id -> store.check(List.of(LEFT + id)));
    }
    return missing;
  }
}
