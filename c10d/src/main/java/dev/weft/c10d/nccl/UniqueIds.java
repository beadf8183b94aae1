package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGetUniqueId;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.store.Store;
import java.util.function.IntUnaryOperator;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclUniqueId;

/** Brings the id of a new communicator from its rank 0 to the others, over the store. Stateless. */
final class UniqueIds {
  private UniqueIds() {}

  /**
   * The id that all ranks of a communicator get, once all of them have come.
   *
   * @param key the same on all of them, and used for nothing else
   * @param globalRanks what the communicator's ranks are called in messages
   */
  static ncclUniqueId share(
      NcclGroup group,
      Store store,
      String key,
      int rank,
      int size,
      IntUnaryOperator globalRanks,
      Deadline deadline) {
    ncclUniqueId id = new ncclUniqueId();
    try {
      exchange(id, group, store, key, rank, size, globalRanks, deadline);
      return id;
    } catch (RuntimeException | Error e) {
      id.close();
      throw e;
    }
  }

  private static void exchange(
      ncclUniqueId id,
      NcclGroup group,
      Store store,
      String key,
      int rank,
      int size,
      IntUnaryOperator globalRanks,
      Deadline deadline) {
    if (rank == 0) {
      NcclLibrary.check("ncclGetUniqueId", ncclGetUniqueId(id));
      byte[] bytes = new byte[nccl.NCCL_UNIQUE_ID_BYTES];
      id.internal().get(bytes);
      if (size > 1) {
        store.set(key, bytes);
      }
    }
    new Arrivals(group.member(), store, deadline)
        .await(key + "/here", "making a communicator", rank, size, globalRanks);
    if (rank == 0) {
      return;
    }
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
  }
}
