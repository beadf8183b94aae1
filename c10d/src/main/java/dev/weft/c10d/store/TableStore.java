package dev.weft.c10d.store;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A store whose callers reach its {@link Table} themselves, one at a time. Subclasses say how they
 * exclude each other and how a waiter learns of a change.
 */
abstract class TableStore implements Store {
  private final Duration timeout;

  TableStore(Duration timeout) {
    this.timeout = Deadline.after(timeout).timeout();
  }

  /**
   * Runs an action while nobody else reads or writes the table; its changes are visible to all when
   * this returns.
   */
  abstract <T> T transact(Function<Table, T> action);

  /**
   * Runs an action as {@link #transact} does, again after each change, until it returns something
   * or time is up.
   */
  abstract <T> Optional<T> await(Deadline deadline, Function<Table, @Nullable T> action);

  @Override
  public void set(String key, byte[] value) {
    multiSet(List.of(key), List.of(value));
  }

  @Override
  public byte[] get(String key) {
    return multiGet(List.of(key)).get(0);
  }

  @Override
  public long add(String key, long delta) {
    return this.<Long>transact(
        table -> {
          try {
            return table.add(key, delta);
          } catch (NumberFormatException e) {
            var value = table.get(key);
            throw new StoreException(
                notANumber(this, key, value == null ? new byte[0] : value.copy()), e);
          }
        });
  }

  static String notANumber(Object store, String key, byte[] value) {
    return "cannot add to key '%s' in %s: its value is \"%s\"; expected text that begins with an integer of 64 bits"
        .formatted(Texts.brief(key), store, Texts.brief(value));
  }

  @Override
  public byte[] compareSet(String key, byte[] expected, byte[] desired) {
    return transact(table -> table.compareSet(key, expected.clone(), desired.clone()).copy());
  }

  @Override
  public void append(String key, byte[] value) {
    transact(
        table -> {
          try {
            table.append(key, value.clone());
          } catch (IllegalStateException e) {
            throw new StoreException(
                "cannot append to key '%s' in %s: %s"
                    .formatted(Texts.brief(key), this, e.getMessage()),
                e);
          }
          return true;
        });
  }

  @Override
  public boolean check(List<String> keys) {
    return this.<Boolean>transact(table -> hasAll(table, keys));
  }

  @Override
  public void waitFor(List<String> keys, Duration timeout) {
    var deadline = Deadline.after(timeout);
    if (this.<Boolean>await(deadline, table -> hasAll(table, keys) ? true : null).isEmpty()) {
      throw timedOut(keys, deadline);
    }
  }

  @Override
  public boolean deleteKey(String key) {
    return this.<Boolean>transact(table -> table.delete(key));
  }

  @Override
  public long numKeys() {
    return this.<Integer>transact(Table::size);
  }

  @Override
  public List<String> listKeys() {
    return transact(table -> List.copyOf(table.keys()));
  }

  @Override
  public List<byte[]> multiGet(List<String> keys) {
    var deadline = Deadline.after(timeout);
    return this.<List<byte[]>>await(
            deadline, table -> hasAll(table, keys) ? values(table, keys) : null)
        .orElseThrow(() -> timedOut(keys, deadline));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    Texts.checkSameLength(keys, values);
    transact(
        table -> {
          for (int i = 0; i < keys.size(); i++) {
            table.set(keys.get(i), values.get(i).clone());
          }
          return true;
        });
  }

  @Override
  public void queuePush(String key, byte[] value) {
    transact(
        table -> {
          table.push(key, value.clone());
          return true;
        });
  }

  @Override
  public byte[] queuePop(String key) {
    var deadline = Deadline.after(timeout);
    return this.<byte[]>await(deadline, table -> table.pop(key))
        .orElseThrow(() -> new StoreTimeoutException(emptyQueue(this, key, deadline)));
  }

  static String emptyQueue(Object store, String key, Deadline deadline) {
    return "queuePop of '%s' in %s timed out after %s: the queue is empty"
        .formatted(Texts.brief(key), store, deadline);
  }

  @Override
  public Optional<byte[]> queuePoll(String key) {
    return transact(table -> Optional.ofNullable(table.pop(key)));
  }

  @Override
  public long queueLen(String key) {
    return this.<Integer>transact(table -> table.queueLength(key));
  }

  @Override
  public Duration timeout() {
    return timeout;
  }

  private static boolean hasAll(Table table, List<String> keys) {
    return keys.stream().allMatch(table::has);
  }

  private static List<byte[]> values(Table table, List<String> keys) {
    var result = new ArrayList<byte[]>(keys.size());
    for (String key : keys) {
      var value = table.get(key);
      result.add(value == null ? new byte[0] : value.copy());
    }
    return result;
  }

  private StoreTimeoutException timedOut(List<String> keys, Deadline deadline) {
    var missing = transact(table -> keys.stream().filter(key -> !table.has(key)).toList());
    return new StoreTimeoutException(waitTimedOut(this, keys, missing, deadline));
  }

  static String waitTimedOut(
      Object store, List<String> keys, List<String> missing, Deadline deadline) {
    return "wait for %s in %s timed out after %s; still missing: %s"
        .formatted(Texts.brief(keys), store, deadline, Texts.brief(missing));
  }
}
