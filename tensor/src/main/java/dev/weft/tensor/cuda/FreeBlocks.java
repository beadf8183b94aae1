package dev.weft.tensor.cuda;

import dev.weft.tensor.cuda.CachingAllocator.Block;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Free blocks by size: two levels of lists with a bitmap each, so that a fitting block is found in
 * constant time (the two-level segregated fit of Masmano et al., "TLSF: a New Dynamic Memory
 * Allocator for Real-Time Systems", ECRTS 2004). Not thread-safe.
 */
final class FreeBlocks {
  // Sixteen lists to each power of two.
  private static final int SECOND_BITS = 4;
  private static final int SECOND = 1 << SECOND_BITS;
  private static final int FIRST = 64;

  private final @Nullable Block[] heads = new Block[FIRST * SECOND];
  private final int[] second = new int[FIRST];
  private long first;

  /** The list of a size: counted in grains, by its leading bits. */
  private static int list(long size) {
    long grains = size / CachingAllocator.GRAIN;
    int power = 63 - Long.numberOfLeadingZeros(grains);
    int rest =
        power >= SECOND_BITS
            ? (int) (grains >>> (power - SECOND_BITS)) & (SECOND - 1)
            : (int) (grains << (SECOND_BITS - power)) & (SECOND - 1);
    return power * SECOND + rest;
  }

  void add(Block block) {
    int at = list(block.size);
    Block head = heads[at];
    block.free = true;
    block.previousFree = null;
    block.nextFree = head;
    if (head != null) {
      head.previousFree = block;
    }
    heads[at] = block;
    second[at >>> SECOND_BITS] |= 1 << (at & (SECOND - 1));
    first |= 1L << (at >>> SECOND_BITS);
  }

  void remove(Block block) {
    int at = list(block.size);
    Block previous = block.previousFree;
    Block next = block.nextFree;
    if (next != null) {
      next.previousFree = previous;
    }
    if (previous != null) {
      previous.nextFree = next;
    } else {
      heads[at] = next;
      if (next == null) {
        int row = at >>> SECOND_BITS;
        second[row] &= ~(1 << (at & (SECOND - 1)));
        if (second[row] == 0) {
          first &= ~(1L << row);
        }
      }
    }
    block.free = false;
    block.previousFree = null;
    block.nextFree = null;
  }

  /** Takes the first block found of at least this size, close to it; null when there is none. */
  @Nullable Block take(long size) {
    int at = list(size);
    // Blocks of this very list may be too small; those of the lists after it cannot be.
    for (Block b = heads[at]; b != null; b = b.nextFree) {
      if (b.size >= size) {
        remove(b);
        return b;
      }
    }
    int row = at >>> SECOND_BITS;
    int inRow = second[row] & -1 << ((at & (SECOND - 1)) + 1);
    if (inRow == 0) {
      long rows = row == 63 ? 0 : first & -1L << (row + 1);
      if (rows == 0) {
        return null;
      }
      row = Long.numberOfTrailingZeros(rows);
      inRow = second[row];
    }
    Block b = heads[row * SECOND + Integer.numberOfTrailingZeros(inRow)];
    if (b == null) {
      throw new IllegalStateException("the bitmap of free blocks does not agree with the lists");
    }
    remove(b);
    return b;
  }

  /** The blocks that are whole segments. */
  List<Block> whole() {
    List<Block> whole = new ArrayList<>();
    for (@Nullable Block head : heads) {
      for (Block b = head; b != null; b = b.nextFree) {
        if (b.before == null && b.after == null) {
          whole.add(b);
        }
      }
    }
    return whole;
  }
}
