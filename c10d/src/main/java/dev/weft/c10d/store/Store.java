package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * A key-value store that all ranks of a world share. Every method may be called from any number of
 * threads at once; a thread that blocks in a wait holds up no other. A write has taken effect when
 * its call returns.
 *
 * <p>Keys are text, values are bytes; the variants that take text use UTF-8. Arrays are copied in
 * and out. A wait that does not end in time throws {@link StoreTimeoutException}; a store that
 * cannot do its work throws {@link StoreException}; interrupting a waiting thread ends its wait
 * with a {@code StoreException} and leaves the interrupt flag set. Semantics are those of {@code
 * torch.distributed.Store}.
 */
public interface Store extends AutoCloseable {
  /**
   * Stores a value, replacing an earlier one.
   *
   * @param key the key
   * @param value the value
   */
  void set(String key, byte[] value);

  /**
   * Stores a text.
   *
   * @param key the key
   * @param value the text
   */
  default void set(String key, String value) {
    set(key, value.getBytes(UTF_8));
  }

  /**
   * Returns a value, waiting for the key for at most {@link #timeout()}.
   *
   * @param key the key
   * @return the value
   */
  byte[] get(String key);

  /**
   * Returns a value as text, waiting for the key for at most {@link #timeout()}.
   *
   * @param key the key
   * @return the text
   */
  default String getString(String key) {
    return new String(get(key), UTF_8);
  }

  /**
   * Adds to a counter, which is stored as decimal text; an absent key counts as 0. Sums wrap around
   * in 64 bits.
   *
   * @param key the key
   * @param delta what to add
   * @return the new value
   * @throws StoreException if the stored text does not begin with an integer of 64 bits
   */
  long add(String key, long delta);

  /**
   * Stores {@code desired} if the present value equals {@code expected}, or if the key is absent
   * and {@code expected} is empty.
   *
   * @param key the key
   * @param expected the value that must be there
   * @param desired the value to store
   * @return the value after the call; {@code expected} if the key is absent and stays so
   */
  byte[] compareSet(String key, byte[] expected, byte[] desired);

  /**
   * The text form of {@link #compareSet(String, byte[], byte[])}.
   *
   * @param key the key
   * @param expected the text that must be there
   * @param desired the text to store
   * @return the text after the call
   */
  default String compareSet(String key, String expected, String desired) {
    return new String(compareSet(key, expected.getBytes(UTF_8), desired.getBytes(UTF_8)), UTF_8);
  }

  /**
   * Appends to a value; an absent key counts as empty.
   *
   * @param key the key
   * @param value what to append
   */
  void append(String key, byte[] value);

  /**
   * Appends text to a value.
   *
   * @param key the key
   * @param value the text to append
   */
  default void append(String key, String value) {
    append(key, value.getBytes(UTF_8));
  }

  /**
   * Returns whether all keys are there, without waiting. A queue that is not empty counts as
   * present.
   *
   * @param keys the keys; none means true
   * @return whether all are present
   */
  boolean check(List<String> keys);

  /**
   * Waits until all keys are there.
   *
   * @param keys the keys
   * @param timeout how long at most; with zero they must be there already
   * @throws StoreTimeoutException if one is still missing then
   */
  void waitFor(List<String> keys, Duration timeout);

  /**
   * Waits until all keys are there, for at most {@link #timeout()}.
   *
   * @param keys the keys
   */
  default void waitFor(List<String> keys) {
    waitFor(keys, timeout());
  }

  /**
   * Removes a key. Queues are not touched.
   *
   * @param key the key
   * @return whether it was there
   */
  boolean deleteKey(String key);

  /**
   * Returns the number of keys in the whole store, whatever their prefix. Queues are not counted.
   *
   * @return the number of keys
   */
  long numKeys();

  /**
   * Returns the names of the keys, in no particular order. Queues are not listed.
   *
   * @return the names
   */
  List<String> listKeys();

  /**
   * Returns several values, waiting for all of them for at most {@link #timeout()}.
   *
   * @param keys the keys, repeated ones allowed
   * @return the values in the order of the keys
   */
  List<byte[]> multiGet(List<String> keys);

  /**
   * Stores several values. Not atomic: others may see some of them before the rest.
   *
   * @param keys the keys
   * @param values as many values
   * @throws IllegalArgumentException if the numbers differ
   */
  void multiSet(List<String> keys, List<byte[]> values);

  /**
   * Adds an element at the end of a queue. Queues have a name space of their own beside the keys.
   *
   * @param key the name of the queue
   * @param value the element
   */
  void queuePush(String key, byte[] value);

  /**
   * Adds a text at the end of a queue.
   *
   * @param key the name of the queue
   * @param value the element
   */
  default void queuePush(String key, String value) {
    queuePush(key, value.getBytes(UTF_8));
  }

  /**
   * Takes the first element of a queue, waiting for one for at most {@link #timeout()}.
   *
   * @param key the name of the queue
   * @return the element
   */
  byte[] queuePop(String key);

  /**
   * Takes the first element of a queue if there is one.
   *
   * @param key the name of the queue
   * @return the element, or nothing
   */
  Optional<byte[]> queuePoll(String key);

  /**
   * Returns the length of a queue.
   *
   * @param key the name of the queue
   * @return the number of elements, 0 for an unknown queue
   */
  long queueLen(String key);

  /**
   * Waits until {@code worldSize} callers have arrived at this key. A key serves one barrier: once
   * filled it stays open, and a caller that timed out stays counted.
   *
   * @param key the name of the barrier
   * @param worldSize how many must arrive
   * @param timeout how long to wait at most
   */
  default void barrier(String key, int worldSize, Duration timeout) {
    Texts.checkWorldSize(worldSize);
    var deadline = Deadline.after(timeout);
    String last = key + "/last_member";
    long arrived = add(key + "/num_members", 1);
    if (arrived >= worldSize) {
      set(last, "1");
      return;
    }
    try {
      waitFor(List.of(last), deadline.remaining());
    } catch (StoreTimeoutException e) {
      long now = add(key + "/num_members", 0);
      throw new StoreTimeoutException(
          "barrier '%s' timed out after %d ms in %s: %d of %d arrived"
              .formatted(Texts.brief(key), timeout.toMillis(), this, now, worldSize),
          e);
    }
  }

  /**
   * Waits until {@code worldSize} callers have arrived, for at most {@link #timeout()}.
   *
   * @param key the name of the barrier
   * @param worldSize how many must arrive
   */
  default void barrier(String key, int worldSize) {
    barrier(key, worldSize, timeout());
  }

  /**
   * Returns how long the waits that take no timeout last at most.
   *
   * @return the timeout
   */
  Duration timeout();

  /**
   * Returns a view of this store with another timeout. It shares everything else; closing it closes
   * nothing.
   *
   * @param timeout the timeout of the view
   * @return the view
   */
  Store withTimeout(Duration timeout);

  /**
   * Returns the address of this machine by which it reached the store's server: others that reach
   * the server can, as a rule, reach this machine by it too.
   *
   * @return the address, if there is a server
   */
  default Optional<InetAddress> localAddress() {
    return Optional.empty();
  }

  /**
   * Releases what this object holds; waits in other threads end with a {@link StoreException}. May
   * be repeated.
   */
  @Override
  void close();
}
