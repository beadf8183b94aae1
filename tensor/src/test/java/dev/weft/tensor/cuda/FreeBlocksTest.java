package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The lists of free blocks, which need no GPU. */
class FreeBlocksTest {
  private final FreeBlocks blocks = new FreeBlocks();

  private CachingAllocator.Block block(long grains) {
    return new CachingAllocator.Block(0, grains * CachingAllocator.GRAIN, null, blocks);
  }

  @Test
  void findsABlockOfExactlyTheSize() {
    for (long grains : new long[] {1, 2, 3, 15, 16, 17, 1000, 1023, 1 << 20}) {
      CachingAllocator.Block b = block(grains);
      blocks.add(b);
      assertThat(blocks.take(b.size)).isSameAs(b);
      assertThat(blocks.take(b.size)).isNull();
    }
  }

  @Test
  void takesTheNextLargerAndNeverASmaller() {
    CachingAllocator.Block small = block(100);
    CachingAllocator.Block large = block(5000);
    blocks.add(small);
    blocks.add(large);
    assertThat(blocks.take(101L * CachingAllocator.GRAIN)).isSameAs(large);
    assertThat(blocks.take(101L * CachingAllocator.GRAIN)).isNull();
    assertThat(blocks.take(99L * CachingAllocator.GRAIN)).isSameAs(small);
  }

  @Test
  void agreesWithASetOverManyRandomSteps() {
    Random random = new Random(7);
    Set<CachingAllocator.Block> inside = new HashSet<>();
    List<CachingAllocator.Block> outside = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      if (outside.isEmpty() || random.nextInt(3) > 0) {
        CachingAllocator.Block b = block(1 + (long) Math.exp(random.nextDouble() * 20));
        blocks.add(b);
        inside.add(b);
        continue;
      }
      long size = (1 + (long) Math.exp(random.nextDouble() * 20)) * CachingAllocator.GRAIN;
      CachingAllocator.Block taken = blocks.take(size);
      boolean any = inside.stream().anyMatch(b -> b.size >= size);
      assertThat(taken != null).as("step %d", i).isEqualTo(any);
      if (taken != null) {
        assertThat(taken.size).isGreaterThanOrEqualTo(size);
        assertThat(inside.remove(taken)).isTrue();
        outside.add(taken);
      }
      if (!inside.isEmpty() && random.nextInt(4) == 0) {
        CachingAllocator.Block b = inside.iterator().next();
        blocks.remove(b);
        assertThat(inside.remove(b)).isTrue();
        outside.add(b);
      }
      outside.add(block(1));
    }
  }
}
