package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The collectives of a group by a {@link Fabric}: an opening, in which the ranks find that all have
 * come and call the same, then the library's own collective. The library's group is made at the
 * first one, when all members are known to be there.
 */
final class FabricAlgorithms implements Algorithms {
  private final Supplier<Fabric.FabricGroup> maker;
  private Fabric.@Nullable FabricGroup made;

  FabricAlgorithms(Supplier<Fabric.FabricGroup> maker) {
    this.maker = maker;
  }

  private synchronized Fabric.FabricGroup fabric() {
    Fabric.FabricGroup there = made;
    if (there == null) {
      there = maker.get();
      made = there;
    }
    return there;
  }

  @Override
  public String describe() {
    return "collectives of MPI";
  }

  @Override
  public void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op) {
    Piece own = staging.inOut(t);
    open(round, new Signature("all_reduce", t.dtype(), op.toString(), -1, t.shape(), null, null));
    Reduction r = new Reduction(staging, t.dtype(), op, round.group().size());
    Piece work = r.prepare(own, true);
    if (t.numel() > 0) {
      run(round, staging, fabric().allReduce(r.dtype(), r.op(), work.address(), t.numel()));
    }
    r.finish(work, own);
    staging.finish();
  }

  @Override
  public void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op) {
    boolean receives = round.group().rank() == root;
    Piece own = receives ? staging.inOut(t) : staging.in(t);
    open(round, new Signature("reduce", t.dtype(), op.toString(), root, t.shape(), null, null));
    Reduction r = new Reduction(staging, t.dtype(), op, round.group().size());
    Piece work = r.prepare(own, receives);
    if (t.numel() > 0) {
      run(round, staging, fabric().reduce(r.dtype(), r.op(), work.address(), t.numel(), root));
    }
    if (receives) {
      r.finish(work, own);
      staging.finish();
    }
  }

  @Override
  public void broadcast(Round round, Staging staging, StridedTensor t, int root) {
    boolean sends = round.group().rank() == root;
    Piece own = sends ? staging.in(t) : staging.out(t);
    open(round, new Signature("broadcast", t.dtype(), "", root, t.shape(), null, null));
    if (t.numel() > 0) {
      run(round, staging, fabric().broadcast(t.dtype(), own.address(), t.numel(), root));
    }
    if (!sends) {
      staging.finish();
    }
  }

  @Override
  public void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype) {
    long[] sent = {count(input, dtype)};
    long[] counts = counts(outputs, dtype);
    open(round, new Signature(name, dtype, "", -1, null, sent, counts));
    Whole out = Whole.output(staging, outputs);
    if (total(counts) > 0) {
      long in = out.apart(staging, input).address();
      run(round, staging, fabric().allGather(dtype, in, out.address(), counts));
    }
    out.unpack();
    staging.finish();
  }

  @Override
  public void reduceScatter(
      Round round,
      Staging staging,
      String name,
      Piece output,
      List<Piece> inputs,
      DType dtype,
      ReduceOp op) {
    long[] received = {count(output, dtype)};
    long[] counts = counts(inputs, dtype);
    open(round, new Signature(name, dtype, op.toString(), -1, null, counts, received));
    Whole in = Whole.input(staging, inputs);
    Reduction r = new Reduction(staging, dtype, op, round.group().size());
    Piece from = r.prepare(in.piece(), false);
    boolean apart = r.dtype() == dtype && !overlap(from, output);
    Piece to = apart ? output : staging.block(received[0] * r.dtype().byteSize());
    if (total(counts) > 0) {
      run(
          round,
          staging,
          fabric().reduceScatter(r.dtype(), r.op(), from.address(), counts, to.address()));
    }
    r.finish(to, output);
    staging.finish();
  }

  @Override
  public void allToAll(
      Round round,
      Staging staging,
      String name,
      List<Piece> outputs,
      List<Piece> inputs,
      DType dtype) {
    long[] sent = counts(inputs, dtype);
    long[] received = counts(outputs, dtype);
    open(round, new Signature(name, dtype, "", -1, null, sent, received));
    Whole out = Whole.output(staging, outputs);
    Piece in = out.apart(staging, Whole.input(staging, inputs).piece());
    // Ranks between which nothing moves take part all the same: the others may exchange something.
    run(round, staging, fabric().allToAll(dtype, in.address(), sent, out.address(), received));
    out.unpack();
    staging.finish();
  }

  @Override
  public void gather(
      Round round,
      Staging staging,
      Piece input,
      @Nullable List<Piece> outputs,
      int root,
      DType dtype) {
    long[] sent = {count(input, dtype)};
    long[] received = outputs == null ? null : counts(outputs, dtype);
    open(round, new Signature("gather", dtype, "", root, null, sent, received));
    if (outputs == null || received == null) {
      run(round, staging, fabric().gather(dtype, input.address(), sent[0], 0, sent, root));
      return;
    }
    Whole out = Whole.output(staging, outputs);
    long in = out.apart(staging, input).address();
    run(round, staging, fabric().gather(dtype, in, sent[0], out.address(), received, root));
    out.unpack();
    staging.finish();
  }

  @Override
  public void scatter(
      Round round,
      Staging staging,
      Piece output,
      @Nullable List<Piece> inputs,
      int root,
      DType dtype) {
    long[] sent = inputs == null ? null : counts(inputs, dtype);
    long[] received = {count(output, dtype)};
    open(round, new Signature("scatter", dtype, "", root, null, sent, received));
    if (inputs == null || sent == null) {
      run(
          round,
          staging,
          fabric().scatter(dtype, 0, received, output.address(), received[0], root));
    } else {
      Piece in = Whole.input(staging, inputs).piece();
      boolean apart = !overlap(in, output);
      Piece to = apart ? output : staging.block(output.bytes());
      run(
          round,
          staging,
          fabric().scatter(dtype, in.address(), sent, to.address(), received[0], root));
      if (!apart) {
        Memory.copy(to.address(), output.address(), output.bytes());
      }
    }
    staging.finish();
  }

  /** The opening is one already. */
  @Override
  public void barrier(Round round) {
    open(round, new Signature("barrier", null, "", -1, null, null, null));
  }

  @Override
  public synchronized void close(boolean idle) {
    Fabric.FabricGroup there = made;
    made = null;
    if (there != null) {
      there.close();
    }
  }

  private static void open(Round round, Signature call) {
    int n = round.group().size();
    @Nullable Payload[] unused = round.exchange(call, new @Nullable Piece[n], new boolean[n]);
  }

  private static void run(Round round, Staging staging, Fabric.Transfer transfer) {
    round.await(staging.usedBy(transfer));
  }

  private static long count(Piece piece, DType dtype) {
    return piece.bytes() / dtype.byteSize();
  }

  private static long[] counts(List<Piece> pieces, DType dtype) {
    return pieces.stream().mapToLong(p -> count(p, dtype)).toArray();
  }

  private static long total(long[] counts) {
    return Arrays.stream(counts).sum();
  }

  static boolean overlap(Piece a, Piece b) {
    return a.address() < b.address() + b.bytes() && b.address() < a.address() + a.bytes();
  }

  /** Pieces as one stretch of memory: their own where they follow each other, else a copy. */
  private record Whole(Piece piece, @Nullable List<Piece> parts) {
    static Whole input(Staging staging, List<Piece> parts) {
      if (follow(parts)) {
        return new Whole(join(parts), null);
      }
      Whole whole = new Whole(room(staging, parts), null);
      long at = whole.address();
      for (Piece p : parts) {
        Memory.copy(p.address(), at, p.bytes());
        at += p.bytes();
      }
      return whole;
    }

    static Whole output(Staging staging, List<Piece> parts) {
      return follow(parts) ? new Whole(join(parts), null) : new Whole(room(staging, parts), parts);
    }

    private static Piece room(Staging staging, List<Piece> parts) {
      return staging.block(parts.stream().mapToLong(Piece::bytes).sum());
    }

    private static Piece join(List<Piece> parts) {
      return new Piece(parts.get(0).address(), parts.stream().mapToLong(Piece::bytes).sum());
    }

    private static boolean follow(List<Piece> parts) {
      for (int i = 1; i < parts.size(); i++) {
        if (parts.get(i).address() != parts.get(i - 1).address() + parts.get(i - 1).bytes()) {
          return false;
        }
      }
      return true;
    }

    long address() {
      return piece.address();
    }

    /** The input itself where it lies outside of this, else a copy. */
    Piece apart(Staging staging, Piece input) {
      if (!overlap(input, piece)) {
        return input;
      }
      Piece copy = staging.block(input.bytes());
      Memory.copy(input.address(), copy.address(), input.bytes());
      return copy;
    }

    /** Hands out what is in a copy. */
    void unpack() {
      if (parts == null) {
        return;
      }
      long at = address();
      for (Piece p : parts) {
        Memory.copy(at, p.address(), p.bytes());
        at += p.bytes();
      }
    }
  }
}
