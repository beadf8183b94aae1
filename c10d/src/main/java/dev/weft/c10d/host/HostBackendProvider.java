package dev.weft.c10d.host;

import dev.weft.c10d.Backend;
import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.RankContext;
import java.util.List;
import java.util.Set;

/** Makes {@code host} backends, also known as {@code gloo}. Thread-safe. */
public final class HostBackendProvider implements BackendProvider {
  /** For the service loader. */
  public HostBackendProvider() {}

  @Override
  public String name() {
    return "host";
  }

  @Override
  public List<String> aliases() {
    return List.of("gloo");
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Backend create(GroupContext group) {
    RankContext context = group.rankContext();
    return new HostBackend(name(), group, Endpoint.of(context), new ChosenAlgorithms(group));
  }
}
