package dev.weft.tensor.cuda;

/**
 * The table at the beginning of the arguments of a kernel over many tensors: columns of addresses,
 * sizes, and the chunk that each tensor begins with. One thread fills and launches it.
 */
final class TensorTable {
  private final int columns;
  private final int capacity;
  private final long chunk;
  private final long[][] addresses;
  private final long[] sizes;
  private final int[] first;
  private int count;
  private long chunks;

  /**
   * An empty table.
   *
   * @param columns tensors that belong together
   * @param capacity how many such groups it has room for, as the kernel's source says
   * @param chunk elements that a block does, as the kernel's source says
   */
  TensorTable(int columns, int capacity, int chunk) {
    this.columns = columns;
    this.capacity = capacity;
    this.chunk = chunk;
    this.addresses = new long[columns][capacity];
    this.sizes = new long[capacity];
    this.first = new int[capacity + 1];
  }

  boolean isEmpty() {
    return count == 0;
  }

  /** Whether a group of tensors of a size must wait for the next launch. */
  boolean isFullFor(long size) {
    return count == capacity || chunks + (size + chunk - 1) / chunk > Integer.MAX_VALUE;
  }

  /** The blocks of a launch. */
  long chunks() {
    return chunks;
  }

  /** Begins a group of at least one element; {@link #address} follows for each column. */
  void add(long size) {
    sizes[count] = size;
    first[count] = (int) chunks;
    chunks += (size + chunk - 1) / chunk;
    count++;
  }

  /** The address of a column's tensor in the group that was begun last. */
  void address(int column, long address) {
    addresses[column][count - 1] = address;
  }

  /** Adds the table to a launch, by value. */
  Launch addTo(Launch launch) {
    for (int c = 0; c < columns; c++) {
      launch.int64s(addresses[c], count, capacity);
    }
    launch.int64s(sizes, count, capacity);
    for (int i = 0; i <= capacity; i++) {
      launch.int32(i < count ? first[i] : (int) chunks);
    }
    return launch.int32(count).align(8);
  }

  void clear() {
    count = 0;
    chunks = 0;
  }
}
