package dev.weft.c10d.nccl;

import dev.weft.c10d.Backend;
import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.GroupContext;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Makes {@code nccl} backends, for CUDA tensors. Thread-safe. */
public final class NcclBackendProvider implements BackendProvider {
  /** For the service loader. */
  public NcclBackendProvider() {}

  @Override
  public String name() {
    return "nccl";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cuda");
  }

  @Override
  public @Nullable String unavailableReason() {
    return NcclLibrary.unavailableReason();
  }

  @Override
  public Backend create(GroupContext group) {
    return NcclBackend.of(group);
  }
}
