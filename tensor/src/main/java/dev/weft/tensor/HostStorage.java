package dev.weft.tensor;

import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.MemoryAccount;
import dev.weft.tensor.memory.StorageCleaner;
import org.jspecify.annotations.Nullable;

/** A storage in the host's native memory, allocated by Weft or borrowed from another owner. */
public final class HostStorage extends Storage {
  private final long address;
  private final StorageCleaner.@Nullable Block block;
  // Keeps the real owner of borrowed memory reachable.
  private @Nullable Object lender;

  private HostStorage(long address, long byteSize, boolean owned, @Nullable Object lender) {
    super(Device.CPU, byteSize);
    this.address = address;
    this.lender = lender;
    this.block = owned ? StorageCleaner.register(this, release(address, byteSize)) : null;
  }

  private static Runnable release(long address, long byteSize) {
    MemoryAccount account = MemoryAccount.current();
    if (account == null) {
      return () -> HostMemory.free(address, byteSize);
    }
    account.charge(byteSize);
    return () -> {
      HostMemory.free(address, byteSize);
      account.credit(byteSize);
    };
  }

  /** Allocates {@code bytes} of arbitrary content. */
  public static HostStorage allocate(long bytes) {
    return new HostStorage(HostMemory.allocate(bytes), bytes, true, null);
  }

  /** Wraps memory that {@code lender} owns and keeps alive while it is reachable. */
  public static HostStorage borrow(long address, long bytes, Object lender) {
    return new HostStorage(address, bytes, false, lender);
  }

  /** The owner of borrowed memory, or null where the memory is Weft's own. */
  public @Nullable Object lender() {
    return lender;
  }

  @Override
  protected long baseAddress() {
    return address;
  }

  @Override
  protected void free() {
    if (block != null) {
      block.free();
    }
    lender = null;
  }
}
