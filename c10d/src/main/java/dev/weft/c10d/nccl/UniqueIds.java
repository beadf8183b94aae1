package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGetUniqueId;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.List;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclUniqueId;

/** Brings the id of a new communicator from its rank 0 to the others, over the store. Stateless. */
final class UniqueIds {
  private static final Duration SLICE = Duration.ofMillis(500);

  private UniqueIds() {}

  /**
   * The id that all ranks of a communicator get.
   *
   * @param key the same on all of them, and used for nothing else
   */
  static ncclUniqueId share(
      NcclBackend backend, Store store, String key, int rank, int size, Deadline deadline) {
    ncclUniqueId id = new ncclUniqueId();
    if (rank == 0) {
      NcclLibrary.check("ncclGetUniqueId", ncclGetUniqueId(id));
      byte[] bytes = new byte[nccl.NCCL_UNIQUE_ID_BYTES];
      id.internal().get(bytes);
      if (size > 1) {
        store.set(key, bytes);
      }
      return id;
    }
    await(backend, store, key, deadline);
    byte[] bytes = store.get(key);
    if (bytes.length != nccl.NCCL_UNIQUE_ID_BYTES) {
      throw new IllegalStateException(
          "the store has "
              + bytes.length
              + " bytes under '"
              + key
              + "'; expected an NCCL id of "
              + nccl.NCCL_UNIQUE_ID_BYTES);
    }
    id.internal().put(bytes);
    // The last one to read it takes it away, so that a later world with this store starts anew.
    if (store.add(key + "/read", 1) == size - 1) {
      boolean unused = store.deleteKey(key) && store.deleteKey(key + "/read");
    }
    return id;
  }

  /** In short steps, between which it looks whether the group has been aborted. */
  private static void await(NcclBackend backend, Store store, String key, Deadline deadline) {
    while (true) {
      Duration left = deadline.remaining();
      try {
        store.waitFor(List.of(key), left.compareTo(SLICE) < 0 ? left : SLICE);
        return;
      } catch (StoreTimeoutException e) {
        Throwable stopped = backend.failure();
        if (stopped != null) {
          throw backend.unusable("making a communicator", stopped);
        }
        if (deadline.hasPassed()) {
          throw new OperationTimeoutException(
              "the NCCL id of group "
                  + backend.describeGroup()
                  + " did not come to rank "
                  + backend.globalRank(backend.rank())
                  + " within "
                  + deadline.timeout().toMillis()
                  + " ms: its first rank has not called NCCL there (key '"
                  + key
                  + "')",
              e);
        }
      }
    }
  }
}
