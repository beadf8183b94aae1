package dev.weft.c10d.nccl;

import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclConfig_t;
import org.bytedeco.javacpp.BytePointer;
import org.jspecify.annotations.Nullable;

/** The configuration of a communicator to be made. Used by one thread; closed after the call. */
final class NcclConfig implements AutoCloseable {
  private static final int UNDEFINED = Integer.MIN_VALUE;

  private final ncclConfig_t config = new ncclConfig_t();
  private final @Nullable BytePointer name;

  /** The bindings have no initialiser: every field is set here to what NCCL's macro sets. */
  NcclConfig(NcclOptions options, String communicatorName) {
    boolean named = NcclLibrary.version() >= NcclLibrary.WITH_SHRINK;
    this.name = named ? new BytePointer(communicatorName) : null;
    config
        .size(config.sizeof())
        .magic(nccl.NCCL_API_MAGIC)
        .version(nccl.NCCL_VERSION_CODE)
        .blocking(options.blockingLaunch() ? 1 : 0)
        .cgaClusterSize(UNDEFINED)
        .minCTAs(options.minCtas() == 0 ? UNDEFINED : options.minCtas())
        .maxCTAs(options.maxCtas() == 0 ? UNDEFINED : options.maxCtas())
        .netName(null)
        .splitShare(options.splitShare() ? 1 : 0)
        .trafficClass(UNDEFINED)
        .commName(name)
        .collnetEnable(UNDEFINED)
        .CTAPolicy(UNDEFINED)
        .shrinkShare(UNDEFINED)
        .nvlsCTAs(UNDEFINED)
        .nChannelsPerNetPeer(UNDEFINED)
        .nvlinkCentricSched(UNDEFINED)
        .graphUsageMode(UNDEFINED)
        .numRmaCtx(UNDEFINED);
  }

  ncclConfig_t pointer() {
    return config;
  }

  @Override
  public void close() {
    config.close();
    if (name != null) {
      name.close();
    }
  }
}
