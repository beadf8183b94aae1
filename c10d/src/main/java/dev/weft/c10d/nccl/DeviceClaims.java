package dev.weft.c10d.nccl;

import dev.weft.c10d.RankContext;
import dev.weft.tensor.cuda.Cuda;
import java.util.HashMap;
import java.util.Map;

/** Which rank of a world of threads uses which device. Thread-safe. */
final class DeviceClaims {
  private final Map<Integer, Integer> rankByDevice = new HashMap<>();

  /**
   * Takes a device for a rank.
   *
   * @throws UnsupportedOperationException if another rank of this process has it
   */
  static void claim(RankContext rank, int device) {
    if (rank.isThreadWorld()) {
      rank.shared(DeviceClaims.class, DeviceClaims::new)
          .claim(rank.rank(), device, rank.worldSize());
    }
  }

  synchronized void claim(int rank, int device, int worldSize) {
    Integer other = rankByDevice.putIfAbsent(device, rank);
    if (other != null && other != rank) {
      throw new UnsupportedOperationException(
          "ranks "
              + other
              + " and "
              + rank
              + " of one process both use cuda:"
              + device
              + ": NCCL takes one rank a GPU. "
              + (worldSize > Cuda.deviceCount()
                  ? "The world has "
                      + worldSize
                      + " ranks and this machine "
                      + Cuda.deviceCount()
                      + " GPUs. Ranks share a GPU only as processes, each with an NCCL_HOSTID of its"
                      + " own (one process has one), NCCL_SOCKET_IFNAME=lo and NCCL_IB_DISABLE=1; or"
                      + " run the threads on the CPU, with backend 'host'"
                  : "Give each rank's thread its own device (Cuda.setDevice, LocalWorld.devices)"));
    }
  }
}
