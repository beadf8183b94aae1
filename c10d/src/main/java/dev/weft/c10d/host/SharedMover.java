package dev.weft.c10d.host;

import dev.weft.tensor.memory.Memory;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Carries out {@link SharedMove}s. What a rank gives goes along with its call where it is short,
 * else through its slots, chunk after chunk, while others take the chunk before; or it is read
 * where it lies. Used by one thread at a time.
 */
final class SharedMover {
  /** A transfer is cut into so many chunks at least, so that ranks work at the same time. */
  private static final int CHUNKS = 4;

  private static final int SHORTEST_CHUNK = 1 << 14;

  private final SharedSegment segment;
  private final HostGroup group;
  private final SharedOpening opening;
  private final SharedSteps steps;
  private final Reducer reducer;
  private final long[] sources;

  SharedMover(
      SharedSegment segment,
      HostGroup group,
      SharedOpening opening,
      SharedSteps steps,
      Reducer reducer) {
    this.segment = segment;
    this.group = group;
    this.opening = opening;
    this.steps = steps;
    this.reducer = reducer;
    this.sources = new long[group.size()];
  }

  /** Who gives how many bytes to whom. */
  private record Sizes(SharedMove move, Signature @Nullable [] calls) {
    long of(int from, int to) {
      Signature s = calls == null ? move.call() : calls[from];
      long elements;
      if (s.sent() != null) {
        elements = s.sentTo(to);
      } else {
        elements = 1;
        for (long d : Objects.requireNonNull(s.shape())) {
          elements *= d;
        }
      }
      return elements * move.dtype().byteSize();
    }

    /** All that a rank gives, as it lies where it goes along with the call. */
    long total(int from, int ranks) {
      if (move.same()) {
        return of(from, 0);
      }
      long sum = 0;
      for (int to = 0; to < ranks; to++) {
        sum += of(from, to);
      }
      return sum;
    }
  }

  void run(Round round, SharedMove move) {
    int n = group.size();
    int me = group.rank();
    Sizes own = new Sizes(move, null);
    List<Piece> give = move.give();
    boolean inline = give != null && own.total(me, n) <= segment.layout().inlineBytes();
    if (give != null && inline) {
      giveInline(round, move, give);
    }
    Signature[] calls = opening.open(round, move.call());
    Sizes sizes = calls == null ? own : new Sizes(move, calls);
    long longest = 0;
    boolean anyInline = false;
    for (int from = 0; from < n; from++) {
      if (!move.gives(from)) {
        continue;
      }
      if (isInline(sizes, from)) {
        anyInline = true;
      } else {
        for (int to = 0; to < n; to++) {
          if (to != from && move.takes(to)) {
            longest = Math.max(longest, sizes.of(from, to));
          }
        }
      }
    }
    if (anyInline && move.takes(me)) {
      takeInline(round, move, sizes);
    }
    if (longest > 0 && steps.areDirect()) {
      lend(round, move, sizes, inline ? null : give);
    } else if (longest > 0) {
      pass(round, move, sizes, inline ? null : give, longest);
    }
  }

  private boolean isInline(Sizes sizes, int from) {
    return sizes.total(from, group.size()) <= segment.layout().inlineBytes();
  }

  // ---- along with the call ----

  private void giveInline(Round round, SharedMove move, List<Piece> give) {
    long at = segment.inline(group.rank(), round.sequence());
    for (int to = 0; to < give.size(); to++) {
      Piece p = give.get(to);
      if (move.same() || to != group.rank()) {
        Memory.copy(p.address(), at, p.bytes());
      }
      at += p.bytes();
    }
  }

  private void takeInline(Round round, SharedMove move, Sizes sizes) {
    int me = group.rank();
    long folded = 0;
    for (int from = 0; from < group.size(); from++) {
      sources[from] = 0;
      if (from == me || !move.gives(from) || !isInline(sizes, from)) {
        continue;
      }
      long at = segment.inline(from, round.sequence());
      for (int to = 0; to < me && !move.same(); to++) {
        at += sizes.of(from, to);
      }
      sources[from] = at;
      folded = sizes.of(from, me);
      if (move.into() != null) {
        Memory.copy(at, move.into().get(from).address(), folded);
      }
    }
    fold(move, 0, folded);
  }

  /** Reduces what lies at the sources, which is so many bytes from so far on of the whole. */
  private void fold(SharedMove move, long offset, long bytes) {
    SharedMove.Fold fold = move.fold();
    if (fold != null && bytes > 0) {
      sources[group.rank()] = fold.own().address() + offset;
      reducer.reduce(
          move.dtype(),
          fold.op(),
          sources,
          bytes / move.dtype().byteSize(),
          fold.out().address() + offset);
    }
  }

  // ---- from memory to memory ----

  private void lend(Round round, SharedMove move, Sizes sizes, @Nullable List<Piece> give) {
    long step = steps.next();
    try {
      if (give != null) {
        long slot = steps.toWrite(round, step);
        for (int to = 0; to < group.size(); to++) {
          Memory.putLong(slot + 8L * to, (move.same() ? give.get(0) : give.get(to)).address());
        }
        steps.written(step);
      }
      if (move.takes(group.rank())) {
        borrow(round, move, sizes, step);
      }
      steps.read(step);
      if (give != null) {
        steps.awaitTaken(round, step);
      }
    } catch (RuntimeException | Error e) {
      steps.giveUp();
      throw e;
    }
    steps.end(1);
  }

  private void borrow(Round round, SharedMove move, Sizes sizes, long step) {
    int me = group.rank();
    boolean[] lenders = new boolean[group.size()];
    long folded = 0;
    for (int from = 0; from < lenders.length; from++) {
      if (from != me && move.gives(from) && !isInline(sizes, from) && sizes.of(from, me) > 0) {
        lenders[from] = true;
        sources[from] = Memory.getLong(steps.toRead(round, from, step) + 8L * me);
        folded = sizes.of(from, me);
      }
    }
    steps.reading(round, step, lenders);
    if (move.into() != null) {
      for (int from = 0; from < lenders.length; from++) {
        if (lenders[from]) {
          Memory.copy(sources[from], move.into().get(from).address(), sizes.of(from, me));
        }
      }
    }
    fold(move, 0, folded);
  }

  // ---- through slots ----

  private int chunk(SharedMove move, long longest) {
    int room = segment.layout().slotBytes();
    long most = move.same() ? room : room / group.size() / 64 * 64;
    long wanted = Math.max(SHORTEST_CHUNK, (longest / CHUNKS + 63) / 64 * 64);
    return (int) Math.min(most, wanted);
  }

  private void pass(
      Round round, SharedMove move, Sizes sizes, @Nullable List<Piece> give, long longest) {
    int chunk = chunk(move, longest);
    long count = (longest + chunk - 1) / chunk;
    long first = steps.next();
    boolean takes = move.takes(group.rank());
    for (long j = 0; j <= count; j++) {
      if (j < count && give != null) {
        put(round, move, give, j * chunk, chunk, first + j);
      }
      if (!takes && j < count) {
        steps.read(first + j);
      }
      if (takes && j > 0) {
        take(round, move, sizes, (j - 1) * chunk, chunk, first + j - 1);
        steps.read(first + j - 1);
      }
    }
    steps.end(count);
  }

  private void put(
      Round round, SharedMove move, List<Piece> give, long offset, int chunk, long step) {
    long slot = steps.toWrite(round, step);
    if (move.same()) {
      put(give.get(0), offset, chunk, slot);
    } else {
      for (int to = 0; to < give.size(); to++) {
        if (to != group.rank()) {
          put(give.get(to), offset, chunk, slot + (long) to * chunk);
        }
      }
    }
    steps.written(step);
  }

  private static void put(Piece piece, long offset, int chunk, long to) {
    long bytes = Math.min(chunk, piece.bytes() - offset);
    if (bytes > 0) {
      Memory.copy(piece.address() + offset, to, bytes);
    }
  }

  private void take(Round round, SharedMove move, Sizes sizes, long offset, int chunk, long step) {
    int me = group.rank();
    long folded = 0;
    for (int from = 0; from < group.size(); from++) {
      if (from == me || !move.gives(from) || isInline(sizes, from)) {
        continue;
      }
      long bytes = Math.min(chunk, sizes.of(from, me) - offset);
      if (bytes <= 0) {
        continue;
      }
      long at = steps.toRead(round, from, step) + (move.same() ? 0 : (long) me * chunk);
      sources[from] = at;
      folded = bytes;
      if (move.into() != null) {
        Memory.copy(at, move.into().get(from).address() + offset, bytes);
      }
    }
    fold(move, offset, folded);
  }
}
