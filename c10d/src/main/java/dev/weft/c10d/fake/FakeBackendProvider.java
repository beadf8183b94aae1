package dev.weft.c10d.fake;

import dev.weft.c10d.Backend;
import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.GroupContext;
import java.util.Set;

/** Makes {@code fake} backends. Thread-safe. */
public final class FakeBackendProvider implements BackendProvider {
  /** For the service loader. */
  public FakeBackendProvider() {}

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu", "cuda");
  }

  @Override
  public Backend create(GroupContext group) {
    return new FakeBackend(group);
  }
}
