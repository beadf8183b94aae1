package dev.weft.c10d;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A backend of someone else, as one would ship it: named in {@code META-INF/services}, picked by
 * its name. It counts the calls and has the host backend do the work.
 */
public final class ThirdPartyBackend implements BackendProvider {
  static final Map<String, AtomicInteger> CALLS = new ConcurrentHashMap<>();

  /** For the service loader. */
  public ThirdPartyBackend() {}

  @Override
  public String name() {
    return "counting";
  }

  @Override
  public List<String> aliases() {
    return List.of("counted");
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Backend create(GroupContext group) {
    Backend host = BackendRegistry.available("host").create(group);
    return (Backend)
        java.lang.reflect.Proxy.newProxyInstance(
            Backend.class.getClassLoader(),
            new Class<?>[] {Backend.class},
            (self, method, arguments) -> {
              CALLS.computeIfAbsent(method.getName(), k -> new AtomicInteger()).incrementAndGet();
              if (method.getName().equals("name")) {
                return name();
              }
              try {
                return method.invoke(host, arguments);
              } catch (java.lang.reflect.InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
