package dev.weft.c10d.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Supplier;

/**
 * The stores that the common specification runs on; each call of {@link #open()} makes a fresh one.
 */
enum StoreKind {
  HASH(HashStore::new),
  FILE(StoreKind::file),
  TCP(StoreKind::tcp),
  PREFIX_HASH(() -> new PrefixStore("p", new HashStore())),
  PREFIX_FILE(() -> new PrefixStore("p", file())),
  PREFIX2_TCP(() -> new PrefixStore("in", new PrefixStore("out", tcp())));

  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  @SuppressWarnings("ImmutableEnumChecker") // a factory without state
  private final Supplier<Store> factory;

  StoreKind(Supplier<Store> factory) {
    this.factory = factory;
  }

  Store open() {
    return factory.get();
  }

  static TcpStore tcp() {
    return TcpStore.at("127.0.0.1", 0).server(true).timeout(TIMEOUT).open();
  }

  static FileStore file() {
    try {
      Path folder = Files.createTempDirectory("weft-store");
      folder.toFile().deleteOnExit();
      return FileStore.open(folder.resolve("store"), 1, TIMEOUT);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Closes a store and all stores below it. */
  static void closeAll(Store store) {
    Store below = store;
    while (below instanceof PrefixStore prefixed) {
      below = prefixed.underlyingStore();
    }
    below.close();
  }
}
