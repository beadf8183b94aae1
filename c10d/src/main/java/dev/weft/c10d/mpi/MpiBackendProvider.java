package dev.weft.c10d.mpi;

import dev.weft.c10d.Backend;
import dev.weft.c10d.BackendProvider;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.LaunchedRank;
import dev.weft.c10d.host.FabricBackends;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Makes {@code mpi} backends. Thread-safe. */
public final class MpiBackendProvider implements BackendProvider {
  /** For the service loader. */
  public MpiBackendProvider() {}

  @Override
  public String name() {
    return "mpi";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public @Nullable String unavailableReason() {
    return MpiLibrary.unavailableReason();
  }

  /** Where mpirun started this process, MPI knows who it is. */
  @Override
  public @Nullable LaunchedRank launched(Map<String, String> environment) {
    if (!environment.containsKey("OMPI_COMM_WORLD_SIZE") && !environment.containsKey("PMI_SIZE")) {
      return null;
    }
    MpiRuntime runtime = MpiRuntime.start();
    String size = String.valueOf(runtime.size());
    boolean sameMachine =
        size.equals(environment.get("OMPI_COMM_WORLD_LOCAL_SIZE"))
            || size.equals(environment.get("MPI_LOCALNRANKS"));
    return new LaunchedRank(
        runtime.rank(), runtime.size(), FabricBackends.address(sameMachine), runtime::broadcast);
  }

  @Override
  public Backend create(GroupContext group) {
    return FabricBackends.create(name(), group, MpiFabric::of);
  }
}
