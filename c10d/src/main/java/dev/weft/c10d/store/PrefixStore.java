package dev.weft.c10d.store;

import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * A view of a store that puts {@code prefix/} in front of every key, so that several users of one
 * store do not meet. As safe for threads as the store below, which it does not close. {@link
 * #numKeys()} counts the whole store, {@link #listKeys()} only the keys under the prefix.
 */
public final class PrefixStore implements Store {
  private final String prefix;
  private final Store store;

  /**
   * Makes a view of a store.
   *
   * @param prefix what to put in front of the keys, without the slash
   * @param store the store below
   */
  public PrefixStore(String prefix, Store store) {
    this.prefix = prefix + "/";
    this.store = store;
  }

  /**
   * Returns the store below this view.
   *
   * @return the store that the prefixed keys go to
   */
  public Store underlyingStore() {
    return store;
  }

  private String join(String key) {
    return prefix + key;
  }

  private List<String> join(List<String> keys) {
    return keys.stream().map(this::join).toList();
  }

  @Override
  public void set(String key, byte[] value) {
    store.set(join(key), value);
  }

  @Override
  public byte[] get(String key) {
    return store.get(join(key));
  }

  @Override
  public long add(String key, long delta) {
    return store.add(join(key), delta);
  }

  @Override
  public byte[] compareSet(String key, byte[] expected, byte[] desired) {
    return store.compareSet(join(key), expected, desired);
  }

  @Override
  public void append(String key, byte[] value) {
    store.append(join(key), value);
  }

  @Override
  public boolean check(List<String> keys) {
    return store.check(join(keys));
  }

  @Override
  public void waitFor(List<String> keys, Duration timeout) {
    store.waitFor(join(keys), timeout);
  }

  @Override
  public boolean deleteKey(String key) {
    return store.deleteKey(join(key));
  }

  @Override
  public long numKeys() {
    return store.numKeys();
  }

  @Override
  public List<String> listKeys() {
    return store.listKeys().stream()
        .filter(key -> key.startsWith(prefix))
        .map(key -> key.substring(prefix.length()))
        .toList();
  }

  @Override
  public List<byte[]> multiGet(List<String> keys) {
    return store.multiGet(join(keys));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    store.multiSet(join(keys), values);
  }

  @Override
  public void queuePush(String key, byte[] value) {
    store.queuePush(join(key), value);
  }

  @Override
  public byte[] queuePop(String key) {
    return store.queuePop(join(key));
  }

  @Override
  public Optional<byte[]> queuePoll(String key) {
    return store.queuePoll(join(key));
  }

  @Override
  public long queueLen(String key) {
    return store.queueLen(join(key));
  }

  @Override
  public Duration timeout() {
    return store.timeout();
  }

  @Override
  public Store withTimeout(Duration timeout) {
    return new PrefixStore(prefix.substring(0, prefix.length() - 1), store.withTimeout(timeout));
  }

  @Override
  public Optional<InetAddress> localAddress() {
    return store.localAddress();
  }

  /** Does nothing: the store below belongs to whoever made it. */
  @Override
  public void close() {}

  @Override
  public String toString() {
    return "PrefixStore(" + prefix + ") of " + store;
  }
}
