package dev.weft.c10d;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * The backends that were found through {@link ServiceLoader} or registered by the program.
 * Thread-safe.
 */
public final class BackendRegistry {
  private static final Map<String, BackendProvider> BY_NAME = new LinkedHashMap<>();
  private static final List<BackendProvider> ALL = new ArrayList<>();

  static {
    ServiceLoader.load(BackendProvider.class, BackendRegistry.class.getClassLoader())
        .forEach(BackendRegistry::register);
  }

  private BackendRegistry() {}

  /**
   * Adds a backend.
   *
   * @throws IllegalStateException if its name or an alias is taken
   */
  public static void register(BackendProvider provider) {
    synchronized (BY_NAME) {
      List<String> names = new ArrayList<>(provider.aliases());
      names.add(0, provider.name());
      for (String name : names) {
        if (BY_NAME.containsKey(name)) {
          throw new IllegalStateException("a backend named '" + name + "' is registered already");
        }
      }
      names.forEach(n -> BY_NAME.put(n, provider));
      ALL.add(provider);
    }
  }

  /** The names of all backends, available or not. */
  public static List<String> names() {
    synchronized (BY_NAME) {
      return ALL.stream().map(BackendProvider::name).toList();
    }
  }

  /** True when a backend of this name is there and can be used. */
  public static boolean isAvailable(String name) {
    BackendProvider provider;
    synchronized (BY_NAME) {
      provider = BY_NAME.get(name.toLowerCase(Locale.ROOT));
    }
    return provider != null && provider.unavailableReason() == null;
  }

  /**
   * A backend by name or alias, available or not.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static BackendProvider find(String name) {
    synchronized (BY_NAME) {
      BackendProvider provider = BY_NAME.get(name.toLowerCase(Locale.ROOT));
      if (provider == null) {
        throw new IllegalArgumentException(
            "backend '"
                + name
                + "' is unknown; expected one of "
                + names()
                + " (others are found when their jar, with a BackendProvider service, is on the"
                + " class path)");
      }
      return provider;
    }
  }

  /**
   * A backend by name or alias that can be used here.
   *
   * @throws UnsupportedOperationException if it cannot, with the reason
   */
  public static BackendProvider available(String name) {
    BackendProvider provider = find(name);
    String reason = provider.unavailableReason();
    if (reason != null) {
      throw new UnsupportedOperationException(
          "backend '" + provider.name() + "' cannot be used here: " + reason);
    }
    return provider;
  }
}
