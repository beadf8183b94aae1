package dev.weft.parallel;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Statistics;
import dev.weft.tensor.op.Unary;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A {@link CommunicationHook} that sends matrices as products of two thin ones: PowerSGD (Vogels,
 * Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
 * Optimization", NeurIPS 2019, algorithms 1 and 2). What the approximation leaves out of a gradient
 * is added to the next one (error feedback). What is not finite, of a step whose gradients have
 * overflowed, is not: the feedback stays what it was before. Gradients of one dimension, and
 * matrices that would not become smaller, are averaged as they are.
 *
 * <p>One object for one model on one rank, with the same options on all ranks; used by the thread
 * that acts for the rank. Its state takes the memory of the compressed gradients in float32.
 */
public final class PowerSgd implements CommunicationHook, AutoCloseable {
  // A column of which less than this is left depends on the others.
  private static final double DEPENDENT = 1e-5;

  private final int rank;
  private final int startStep;
  private final double minCompression;
  private final boolean warmStart;
  private final boolean errorFeedback;
  private final long seed;
  private final Generator generator;
  private final IdentityHashMap<Tensor, State> states = new IdentityHashMap<>();
  // How often each bucket has come: the steps.
  private final Map<Integer, Integer> steps = new HashMap<>();
  private long dense;
  private long sent;

  /** What is kept of a parameter. */
  private static final class State {
    @Nullable StridedTensor error;
    @Nullable StridedTensor q;
  }

  /** A gradient that is sent as a product. */
  private record Factors(
      State state, StridedTensor piece, StridedTensor matrix, long p, long q, long columns) {}

  private PowerSgd(
      int rank,
      int startStep,
      double minCompression,
      boolean warmStart,
      boolean errorFeedback,
      long seed) {
    if (rank < 1 || startStep < 0 || !(minCompression > 0)) {
      throw new IllegalArgumentException(
          "PowerSgd: rank is "
              + rank
              + ", startStep "
              + startStep
              + " and minCompression "
              + minCompression
              + "; expected 1 or more, 0 or more, more than 0");
    }
    this.rank = rank;
    this.startStep = startStep;
    this.minCompression = minCompression;
    this.warmStart = warmStart;
    this.errorFeedback = errorFeedback;
    this.seed = seed;
    this.generator = new Generator(seed);
  }

  /**
   * From the thousand-and-first step on, matrices that become at most half as large, with a warm
   * start and error feedback: PyTorch's defaults.
   *
   * @param rank the number of columns of the thin matrices
   */
  public static PowerSgd of(int rank) {
    return new PowerSgd(rank, 1000, 2, true, true, 0);
  }

  /** Averages the first so many steps as they are, while gradients change most. */
  public PowerSgd withStartStep(int step) {
    return new PowerSgd(rank, step, minCompression, warmStart, errorFeedback, seed);
  }

  /** Compresses what becomes at least so many times smaller. */
  public PowerSgd withMinCompression(double times) {
    return new PowerSgd(rank, startStep, times, warmStart, errorFeedback, seed);
  }

  /** Starts each step from the last one's thin matrix, or from a random one. */
  public PowerSgd withWarmStart(boolean warm) {
    return new PowerSgd(rank, startStep, minCompression, warm, errorFeedback, seed);
  }

  /** With error feedback, or without, where what is left out is lost. */
  public PowerSgd withErrorFeedback(boolean feedback) {
    return new PowerSgd(rank, startStep, minCompression, warmStart, feedback, seed);
  }

  /** With other random matrices; the same on all ranks. */
  public PowerSgd withSeed(long other) {
    return new PowerSgd(rank, startStep, minCompression, warmStart, errorFeedback, other);
  }

  /** How many elements the gradients have had for each that was sent, so far. */
  public double compression() {
    return sent == 0 ? 1 : (double) dense / sent;
  }

  @Override
  public Supplier<? extends Tensor> start(GradientBucket bucket) {
    int step = steps.merge(bucket.index(), 1, Integer::sum) - 1;
    dense += bucket.buffer().numel();
    if (step < startStep) {
      sent += bucket.buffer().numel();
      return CommunicationHook.allReduce().start(bucket);
    }
    return Autograd.noGrad(() -> new Step(bucket).start());
  }

  /** One bucket of one step. */
  private final class Step {
    private final GradientBucket bucket;
    private final DType dtype;
    private final List<StridedTensor> rest = new ArrayList<>();
    private final List<Factors> factors = new ArrayList<>();
    private long restElements;
    private long pElements;
    private long qElements;

    Step(GradientBucket bucket) {
      this.bucket = bucket;
      this.dtype = bucket.buffer().dtype() == DType.FLOAT64 ? DType.FLOAT64 : DType.FLOAT32;
      long at = 0;
      for (Tensor parameter : bucket.parameters()) {
        long[] shape = Parts.of(parameter).shape();
        StridedTensor piece = Parts.piece(bucket.buffer(), at, shape);
        long n = shape.length == 0 || shape[0] == 0 ? 0 : shape[0];
        long m = n == 0 ? 0 : piece.numel() / n;
        if (shape.length > 1 && m > 0 && n * m >= minCompression * rank * (n + m)) {
          add(parameter, Regions.reshaped(piece, n, m), n, m);
        } else if (piece.numel() > 0) {
          rest.add(piece);
          restElements += piece.numel();
        }
        at += piece.numel();
      }
    }

    /** The gradient with what was left out before, and the thin matrix to start from. */
    private void add(Tensor parameter, StridedTensor piece, long n, long m) {
      State state = states.computeIfAbsent(parameter, p -> new State());
      StridedTensor matrix = outside(n, m);
      Parts.copy(piece, matrix);
      if (state.error != null) {
        Tensor unused = InPlace.add(matrix, state.error);
      }
      if (state.q == null) {
        state.q = outside(m, rank);
        Tensor unused = InPlace.zero(state.q);
      } else if (!warmStart) {
        Tensor unused = InPlace.zero(state.q);
      }
      fillUp(state.q);
      orthonormalize(state.q);
      factors.add(new Factors(state, piece, matrix, pElements, qElements, rank));
      pElements += n * rank;
      qElements += m * rank;
    }

    /** Random numbers, the same on all ranks, where there is no column (any more). */
    private void fillUp(StridedTensor q) {
      try (TensorScope scope = TensorScope.openWithoutWaiting()) {
        Tensor fresh = Random.randn(generator, DType.FLOAT32, q.shape());
        fresh = fresh.to(q.device()).to(dtype);
        Tensor largest = Extrema.amax(Unary.abs(q), new int[] {0}, true);
        Tensor there = Compare.logicalAnd(Compare.gt(largest, 0), isFinite(largest));
        Parts.copy((StridedTensor) Compare.where(there, q, fresh), q);
      }
    }

    private StridedTensor outside(long... shape) {
      return TensorScope.outside(() -> Tensors.empty(dtype, bucket.buffer().device(), shape));
    }

    Supplier<Tensor> start() {
      sent += restElements + pElements + qElements;
      StridedTensor ps = outside(pElements);
      StridedTensor flat =
          TensorScope.outside(
              () -> Tensors.empty(bucket.buffer().dtype(), bucket.buffer().device(), restElements));
      List<Work> works = new ArrayList<>();
      try (TensorScope scope = TensorScope.openWithoutWaiting()) {
        for (Factors f : factors) {
          StridedTensor q = Objects.requireNonNull(f.state.q);
          Parts.copy((StridedTensor) MatMul.matmul(f.matrix, q), p(ps, f));
        }
        long at = 0;
        for (StridedTensor r : rest) {
          Parts.copy(r, Parts.piece(flat, at, r.shape()));
          at += r.numel();
        }
      }
      for (StridedTensor message : List.of(ps, flat)) {
        if (message.numel() > 0) {
          works.add(bucket.group().allReduce(message, ReduceOp.AVG, CollectiveOptions.ASYNC));
        }
      }
      return () -> Autograd.noGrad(() -> finish(ps, flat, works));
    }

    private StridedTensor p(StridedTensor ps, Factors f) {
      return Parts.piece(ps, f.p, f.matrix.size(0), f.columns);
    }

    private Tensor finish(StridedTensor ps, StridedTensor flat, List<Work> works) {
      works.forEach(Work::await);
      StridedTensor qs = outside(qElements);
      try (TensorScope scope = TensorScope.open()) {
        for (Factors f : factors) {
          StridedTensor p = p(ps, f);
          orthonormalize(p);
          Parts.copy((StridedTensor) MatMul.matmul(f.matrix.transpose(0, 1), p), q(qs, f));
        }
        if (qElements > 0) {
          bucket.group().allReduce(qs, ReduceOp.AVG, CollectiveOptions.SYNC).await();
        }
        for (Factors f : factors) {
          StridedTensor q = Objects.requireNonNull(f.state.q);
          Parts.copy(q(qs, f), q);
          Tensor approximation = MatMul.matmul(p(ps, f), q.transpose(0, 1));
          Parts.copy((StridedTensor) approximation, f.piece);
          keepError(f, approximation);
        }
        long at = 0;
        for (StridedTensor r : rest) {
          Parts.copy(Parts.piece(flat, at, r.shape()), r);
          at += r.numel();
        }
      }
      List.of(ps, qs, flat).forEach(Tensor::close);
      return bucket.buffer();
    }

    private StridedTensor q(StridedTensor qs, Factors f) {
      return Parts.piece(qs, f.q, f.matrix.size(1), f.columns);
    }

    /** This rank's gradient less what all agreed on; where that is no number, as before. */
    private void keepError(Factors f, Tensor approximation) {
      StridedTensor before = f.state.error;
      if (errorFeedback) {
        Tensor unused = InPlace.sub(f.matrix, approximation);
        Tensor otherwise = before == null ? Creation.zerosLike(f.matrix) : before;
        Tensor kept = Compare.where(isFinite(f.matrix), f.matrix, otherwise);
        Parts.copy((StridedTensor) kept, f.matrix);
        f.state.error = f.matrix;
      } else {
        f.matrix.close();
        f.state.error = null;
      }
      if (before != null) {
        before.close();
      }
    }
  }

  /**
   * Gram and Schmidt's method on the columns, in place, each step twice for the sake of rounding. A
   * column that depends on those before it, as far as its dtype can tell, becomes 0.
   */
  static void orthonormalize(StridedTensor x) {
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      int[] down = {0};
      // So that squares of small numbers are no zeros.
      Tensor largest = Extrema.max(Unary.abs(x));
      Tensor unused = InPlace.div(x, Compare.where(Compare.gt(largest, 0), largest, one(largest)));
      Tensor lengths = Statistics.vectorNorm(x, 2, down, true);
      for (int i = 0; i < x.size(1); i++) {
        StridedTensor column = Regions.narrow(x, 1, i, 1);
        for (int pass = 0; pass < 2 && i > 0; pass++) {
          StridedTensor before = Regions.narrow(x, 1, 0, i);
          Tensor along = MatMul.matmul(before.transpose(0, 1), column);
          unused = InPlace.sub(column, MatMul.matmul(before, along));
        }
        Tensor length = Statistics.vectorNorm(column, 2, down, true);
        Tensor least = Pointwise.mul(lengths.slice(1, i, i + 1), DEPENDENT);
        Tensor inverse = Pointwise.div(one(length), length);
        inverse = Compare.where(Compare.gt(length, least), inverse, Creation.zerosLike(length));
        unused = InPlace.mul(column, inverse);
      }
    }
  }

  private static Tensor isFinite(Tensor x) {
    return Compare.eq(Pointwise.sub(x, x), 0); // infinity less infinity is no number
  }

  private static Tensor one(Tensor like) {
    return Creation.fullLike(like, 1);
  }

  /** Lets the state go. */
  @Override
  public void close() {
    for (State s : states.values()) {
      if (s.error != null) {
        s.error.close();
      }
      if (s.q != null) {
        s.q.close();
      }
    }
    states.clear();
  }
}
