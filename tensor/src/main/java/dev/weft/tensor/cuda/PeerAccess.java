package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaDeviceCanAccessPeer;
import static org.bytedeco.cuda.global.cudart.cudaDeviceEnablePeerAccess;
import static org.bytedeco.cuda.global.cudart.cudaErrorPeerAccessAlreadyEnabled;
import static org.bytedeco.cuda.global.cudart.cudaErrorTooManyPeers;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.cuda.global.cudart;

/** Lets devices reach each other's memory, so that copies do not go through the host. Stateless. */
final class PeerAccess {
  private static final Set<Long> DONE = ConcurrentHashMap.newKeySet();

  private PeerAccess() {}

  /**
   * Lets a device reach another's memory, where the hardware can, and as many others as it can;
   * copies work without, only slower.
   */
  static void enable(int device, int peer) {
    if (!DONE.add((long) device << 32 | peer)) {
      return;
    }
    int[] can = {0};
    CudaCheck.runtime("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(can, device, peer));
    if (can[0] == 0) {
      return;
    }
    CudaThread.bind(device);
    int code = cudaDeviceEnablePeerAccess(peer, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled || code == cudaErrorTooManyPeers) {
      int unused = cudart.cudaGetLastError();
      return;
    }
    CudaCheck.runtime("cudaDeviceEnablePeerAccess", code);
  }
}
