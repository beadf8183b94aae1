package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaDevAttrMaxSharedMemoryPerBlockOptin;

import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import org.jspecify.annotations.Nullable;

/**
 * Scaled dot-product attention on a GPU. float16, bfloat16 and float32 with heads of up to 128 go
 * to kernels that keep no matrix of scores; everything else multiplies matrices, some queries at a
 * time. float32 heeds {@link CudaMath#isTf32Allowed()}. Equal inputs give equal bits in all.
 *
 * <p>Tensors have four dimensions: [batch, heads, sequence, width], or [batch, sequence, heads,
 * width] where {@code sequenceDim} is 1.
 */
public final class CudaAttention {
  // Scores that are held at a time where they are.
  private static final long SCORE_BYTES = 256L << 20;
  private static final KernelsByDType SOFTMAX = general("attention_softmax");
  private static final KernelsByDType DELTA = general("attention_delta");
  private static final KernelsByDType GRADIENT = general("attention_gradient");
  // Of heads of up to 32, 64 and 128.
  private static final Flash[] HALF = {Flash.half(32), Flash.half(64), Flash.half(128)};
  private static final Flash[] TF32 = {Flash.tf32(32), Flash.tf32(64), Flash.tf32(128)};
  private static final Flash[] EXACT = {Flash.exact(32), Flash.exact(64), Flash.exact(128)};

  private static KernelsByDType general(String name) {
    return new KernelsByDType("attention.cu", name);
  }

  /** The most shared memory of a block on each device. */
  private static final class Shared {
    static final int[] BYTES = new int[Cuda.deviceCount()];

    static {
      for (int i = 0; i < BYTES.length; i++) {
        BYTES[i] = Cuda.attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, i);
      }
    }
  }

  /** The kernels for one width of a head; sizes are those of their sources. */
  private static final class Flash {
    final int width;
    // A block's threads and the rows that it has of its own.
    final int threads;
    final int tile;
    // Elements that a thread of the delta kernel reads.
    final int chunk;
    // Shared memory.
    final int forwardBytes;
    final int queriesBytes;
    final int keysBytes;
    final KernelsByDType forward;
    final KernelsByDType delta;
    final KernelsByDType queries;
    final KernelsByDType keys;

    /**
     * @param size bytes of an element
     * @param forwardRows rows of the width in shared memory in the forward kernel
     * @param forwardScores elements of scores there
     * @param side the other side's tile in the backward kernels
     * @param scores elements of scores there
     */
    private Flash(
        String file,
        int width,
        int size,
        int threads,
        int tile,
        int forwardRows,
        int forwardScores,
        int side,
        int scores,
        String... defines) {
      this.width = width;
      this.threads = threads;
      this.tile = tile;
      chunk = 16 / size;
      forwardBytes = (forwardRows * width + forwardScores) * size;
      queriesBytes = ((2 * tile + 4 * side) * width + scores) * size;
      // Two stages of lse and delta besides.
      keysBytes = queriesBytes + 4 * side * Float.BYTES;
      forward = new KernelsByDType(file, "flash_forward", defines);
      delta = new KernelsByDType(file, "flash_delta", defines);
      queries = new KernelsByDType(file, "flash_backward_queries", defines);
      keys = new KernelsByDType(file, "flash_backward_keys", defines);
    }

    /** float16 and bfloat16. */
    static Flash half(int width) {
      int side = width <= 64 ? 64 : 32;
      return new Flash("flash.cu", width, 2, 128, 64, 64 + 4 * 64, 0, side, 0, "D=" + width);
    }

    /** float32 whose factors are rounded to TF32. */
    static Flash tf32(int width) {
      return new Flash(
          "flash32.cu", width, 4, 128, 64, 64 + 4 * 32, 0, 32, 0, "D=" + width, "EXACT=0");
    }

    /** float32. */
    static Flash exact(int width) {
      return new Flash(
          "flash32.cu",
          width,
          4,
          width <= 64 ? 128 : 256,
          128,
          128 + 2 * 64,
          128 * 64,
          32,
          128 * 32,
          "D=" + width,
          "EXACT=1");
    }

    long blocks(StridedTensor t) {
      return t.shape()[0] * t.shape()[1] * ((t.shape()[2] + tile - 1) / tile);
    }
  }

  private CudaAttention() {}

  /**
   * The tiled kernels for such heads; null where there are none, or none that the device can run.
   */
  private static @Nullable Flash flash(StridedTensor q) {
    Flash[] all;
    switch (q.dtype()) {
      case FLOAT16, BFLOAT16 -> all = HALF;
      case FLOAT32 -> all = CudaMath.isTf32Allowed() ? TF32 : EXACT;
      default -> {
        return null;
      }
    }
    int device = q.device().index();
    for (Flash flash : all) {
      if (q.shape()[3] <= flash.width) {
        boolean runs =
            Cuda.properties(device).major() >= 8
                && Math.max(flash.forwardBytes, flash.keysBytes) <= Shared.BYTES[device];
        return runs ? flash : null;
      }
    }
    return null;
  }

  /** As [batch, heads, sequence, width]. */
  private static StridedTensor heads(StridedTensor t, int sequenceDim) {
    if (sequenceDim == 2) {
      return t;
    }
    long[] s = t.shape();
    long[] d = t.strides();
    return t.withLayout(
        new long[] {s[0], s[2], s[1], s[3]}, new long[] {d[0], d[2], d[1], d[3]}, t.offset());
  }

  /** A tensor as the tiled kernels read it: dense rows of a width at multiples of 16 bytes. */
  private static StridedTensor rows(CudaTemporaries temporaries, StridedTensor t, int width) {
    if (t.shape()[3] < width) {
      long[] shape = t.shape().clone();
      long own = shape[3];
      shape[3] = width;
      StridedTensor wide = temporaries.empty(t.dtype(), shape);
      CudaFills.fill(wide, 0);
      CudaCopies.copy(t, narrow(wide, 3, 0, own));
      return wide;
    }
    long[] d = t.strides();
    int chunk = 16 / t.dtype().byteSize();
    boolean aligned =
        d[3] == 1
            && (d[0] % chunk == 0 || t.shape()[0] == 1)
            && (d[1] % chunk == 0 || t.shape()[1] == 1)
            && (d[2] % chunk == 0 || t.shape()[2] == 1)
            && t.dataAddress() % 16 == 0;
    return aligned ? t : temporaries.packed(t, t.dtype());
  }

  private static StridedTensor narrow(StridedTensor t, int dim, long start, long length) {
    long[] shape = t.shape().clone();
    shape[dim] = length;
    return t.withLayout(shape, t.strides(), t.offset() + start * t.strides()[dim]);
  }

  private static Launch strides(Launch launch, StridedTensor t) {
    long[] d = t.strides();
    return launch.int64(d[0]).int64(d[1]).int64(d[2]);
  }

  private static int size(long n, StridedTensor t) {
    if (n > Integer.MAX_VALUE / 2) {
      throw new UnsupportedOperationException(
          "attention on a GPU takes sizes below 2^30; got " + t.describe());
    }
    return (int) n;
  }

  /**
   * out = softmax(scale q k^T) v, and the logarithm of the sum of e^score for each query.
   *
   * @param lse [batch, heads, queries], float32, or float64 for float64
   */
  public static void forward(
      StridedTensor q,
      StridedTensor k,
      StridedTensor v,
      StridedTensor out,
      StridedTensor lse,
      double scale,
      boolean causal,
      int sequenceDim) {
    if (out.numel() == 0) {
      return;
    }
    StridedTensor qs = heads(q, sequenceDim);
    StridedTensor ks = heads(k, sequenceDim);
    StridedTensor vs = heads(v, sequenceDim);
    StridedTensor os = heads(out, sequenceDim);
    if (ks.shape()[2] == 0) {
      CudaFills.fill(out, 0);
      CudaFills.fill(lse, Double.NEGATIVE_INFINITY);
      return;
    }
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      Flash flash = flash(qs);
      if (flash == null) {
        DType wide = lse.dtype();
        generalForward(
            temporaries,
            temporaries.as(qs, wide),
            temporaries.as(ks, wide),
            temporaries.as(vs, wide),
            os,
            lse,
            scale,
            causal);
        return;
      }
      qs = rows(temporaries, qs, flash.width);
      ks = rows(temporaries, ks, flash.width);
      vs = rows(temporaries, vs, flash.width);
      StridedTensor to = target(temporaries, os, flash.width);
      Launch launch =
          Launch.on(out.device().index())
              .int64(qs.dataAddress())
              .int64(ks.dataAddress())
              .int64(vs.dataAddress())
              .int64(to.dataAddress())
              .int64(lse.dataAddress())
              .int32(size(qs.shape()[0], q))
              .int32(size(qs.shape()[1], q))
              .int32(size(qs.shape()[2], q))
              .int32(size(ks.shape()[2], k))
              .float32((float) scale)
              .int32(causal ? 1 : 0)
              .align(8);
      strides(strides(strides(strides(launch, qs), ks), vs), to)
          .run(
              flash.forward.of(q.dtype()),
              flash.blocks(qs),
              1,
              1,
              flash.threads,
              1,
              flash.forwardBytes);
      unpad(to, os);
    }
  }

  private static StridedTensor target(CudaTemporaries temporaries, StridedTensor t, int width) {
    if (t.shape()[3] == width) {
      return t;
    }
    long[] shape = t.shape().clone();
    shape[3] = width;
    return temporaries.empty(t.dtype(), shape);
  }

  private static void unpad(StridedTensor from, StridedTensor to) {
    if (from != to) {
      CudaCopies.copy(narrow(from, 3, 0, to.shape()[3]), to);
    }
  }

  /** The gradients of q, k and v from g, that of the result. */
  public static void backward(
      StridedTensor g,
      StridedTensor q,
      StridedTensor k,
      StridedTensor v,
      StridedTensor out,
      StridedTensor lse,
      StridedTensor[] gradients,
      double scale,
      boolean causal,
      int sequenceDim) {
    if (q.numel() == 0 || k.numel() == 0) {
      for (StridedTensor t : gradients) {
        if (t.numel() > 0) {
          CudaFills.fill(t, 0);
        }
      }
      return;
    }
    StridedTensor gs = heads(g, sequenceDim);
    StridedTensor qs = heads(q, sequenceDim);
    StridedTensor ks = heads(k, sequenceDim);
    StridedTensor vs = heads(v, sequenceDim);
    StridedTensor os = heads(out, sequenceDim);
    StridedTensor dq = heads(gradients[0], sequenceDim);
    StridedTensor dk = heads(gradients[1], sequenceDim);
    StridedTensor dv = heads(gradients[2], sequenceDim);
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor lses = temporaries.contiguous(lse);
      Flash flash = flash(qs);
      if (flash == null) {
        DType wide = lse.dtype();
        generalBackward(
            temporaries,
            new StridedTensor[] {
              temporaries.as(gs, wide),
              temporaries.as(qs, wide),
              temporaries.as(ks, wide),
              temporaries.as(vs, wide),
              temporaries.as(os, wide),
              lses
            },
            new StridedTensor[] {dq, dk, dv},
            scale,
            causal);
        return;
      }
      int width = flash.width;
      StridedTensor gw =
          rows(
              temporaries,
              gs.dtype() == qs.dtype() ? gs : temporaries.packed(gs, qs.dtype()),
              width);
      StridedTensor qw = rows(temporaries, qs, width);
      StridedTensor kw = rows(temporaries, ks, width);
      StridedTensor vw = rows(temporaries, vs, width);
      StridedTensor ow = rows(temporaries, os, width);
      StridedTensor delta = temporaries.empty(DType.FLOAT32, lse.shape());
      int device = out.device().index();
      long gAt = gw.dataAddress();
      long qAt = qw.dataAddress();
      long kAt = kw.dataAddress();
      long vAt = vw.dataAddress();
      long oAt = ow.dataAddress();
      long lseAt = lses.dataAddress();
      int batch = size(qs.shape()[0], q);
      int count = size(qs.shape()[1], q);
      int queries = size(qs.shape()[2], q);
      int keys = size(ks.shape()[2], k);
      long rows = (long) batch * count * queries;
      Launch launch =
          Launch.on(device)
              .int64(gAt)
              .int64(oAt)
              .int64(delta.dataAddress())
              .int32(count)
              .int32(queries)
              .int64(rows);
      strides(strides(launch, gw), ow)
          .run(
              flash.delta.of(q.dtype()),
              (rows * (width / flash.chunk) + flash.threads - 1) / flash.threads,
              flash.threads);
      StridedTensor toQ = target(temporaries, dq, width);
      StridedTensor toK = target(temporaries, dk, width);
      StridedTensor toV = target(temporaries, dv, width);
      for (int side = 0; side < 2; side++) {
        launch =
            Launch.on(device)
                .int64(gAt)
                .int64(qAt)
                .int64(kAt)
                .int64(vAt)
                .int64(lseAt)
                .int64(delta.dataAddress());
        if (side == 0) {
          launch.int64(toQ.dataAddress());
        } else {
          launch.int64(toK.dataAddress()).int64(toV.dataAddress());
        }
        launch
            .int32(batch)
            .int32(count)
            .int32(queries)
            .int32(keys)
            .float32((float) scale)
            .int32(causal ? 1 : 0)
            .align(8);
        strides(strides(strides(strides(launch, gw), qw), kw), vw);
        if (side == 0) {
          strides(launch, toQ)
              .run(
                  flash.queries.of(q.dtype()),
                  flash.blocks(qw),
                  1,
                  1,
                  flash.threads,
                  1,
                  flash.queriesBytes);
        } else {
          // dk and dv have one layout.
          strides(launch, toK)
              .run(
                  flash.keys.of(q.dtype()),
                  flash.blocks(kw),
                  1,
                  1,
                  flash.threads,
                  1,
                  flash.keysBytes);
        }
      }
      unpad(toQ, dq);
      unpad(toK, dk);
      unpad(toV, dv);
    }
  }

  /** Queries whose scores are held at a time. */
  private static long step(StridedTensor q, StridedTensor k) {
    long bytes = q.shape()[1] * k.shape()[2] * q.dtype().byteSize();
    return Math.max(1, Math.min(q.shape()[2], SCORE_BYTES / bytes));
  }

  /** [heads, length, width] of one batch element. */
  private static StridedTensor part(StridedTensor t, long batch, long first, long length) {
    long[] s = t.shape();
    long[] d = t.strides();
    return t.withLayout(
        new long[] {s[1], length, s[3]},
        new long[] {d[1], d[2], d[3]},
        t.offset() + batch * d[0] + first * d[2]);
  }

  private static StridedTensor transposed(StridedTensor t) {
    long[] s = t.shape();
    long[] d = t.strides();
    return t.withLayout(new long[] {s[0], s[2], s[1]}, new long[] {d[0], d[2], d[1]}, t.offset());
  }

  /** The first rows of a contiguous buffer, as a smaller contiguous tensor. */
  private static StridedTensor front(StridedTensor buffer, long... shape) {
    return buffer.withLayout(shape, dev.weft.tensor.Shapes.contiguousStrides(shape), 0);
  }

  private static void generalForward(
      CudaTemporaries temporaries,
      StridedTensor q,
      StridedTensor k,
      StridedTensor v,
      StridedTensor out,
      StridedTensor lse,
      double scale,
      boolean causal) {
    long heads = q.shape()[1];
    long queries = q.shape()[2];
    long keys = k.shape()[2];
    long width = q.shape()[3];
    int device = out.device().index();
    long step = step(q, k);
    StridedTensor scores = temporaries.empty(q.dtype(), heads, step, keys);
    StridedTensor mixed = temporaries.empty(q.dtype(), heads, step, width);
    for (long b = 0; b < q.shape()[0]; b++) {
      for (long first = 0; first < queries; first += step) {
        long rows = Math.min(step, queries - first);
        long seen = causal ? Math.min(keys, first + rows) : keys;
        StridedTensor s = front(scores, heads, rows, seen);
        CudaMatMul.matmul(part(q, b, first, rows), transposed(part(k, b, 0, seen)), s, scale, 0);
        Launch.on(device)
            .int64(s.dataAddress())
            .int64(lse.dataAddress() + b * heads * queries * lse.dtype().byteSize())
            .int32((int) rows)
            .int64(seen)
            .int64(first)
            .int64(queries)
            .int32(causal ? 1 : 0)
            .run(SOFTMAX.of(q.dtype()), heads * rows, CudaSoftmax.threads(seen));
        StridedTensor o = front(mixed, heads, rows, width);
        CudaMatMul.matmul(s, part(v, b, 0, seen), o, 1, 0);
        CudaCopies.copy(o, part(out, b, first, rows));
      }
    }
  }

  /** The first array holds g, q, k, v, the result and lse; the second takes the gradients. */
  private static void generalBackward(
      CudaTemporaries temporaries,
      StridedTensor[] in,
      StridedTensor[] gradients,
      double scale,
      boolean causal) {
    StridedTensor g = in[0];
    StridedTensor q = in[1];
    StridedTensor k = in[2];
    StridedTensor v = in[3];
    StridedTensor out = in[4];
    StridedTensor lse = in[5];
    long heads = q.shape()[1];
    long queries = q.shape()[2];
    long keys = k.shape()[2];
    long width = q.shape()[3];
    int device = out.device().index();
    DType dtype = q.dtype();
    long step = step(q, k);
    StridedTensor scores = temporaries.empty(dtype, heads, step, keys);
    StridedTensor changes = temporaries.empty(dtype, heads, step, keys);
    StridedTensor means = temporaries.empty(dtype, heads, step);
    StridedTensor toQ = temporaries.empty(dtype, heads, step, width);
    StridedTensor toK = temporaries.empty(dtype, heads, keys, width);
    StridedTensor toV = temporaries.empty(dtype, heads, keys, width);
    for (long b = 0; b < q.shape()[0]; b++) {
      StridedTensor kb = part(k, b, 0, keys);
      StridedTensor vb = part(v, b, 0, keys);
      for (long first = 0; first < queries; first += step) {
        long rows = Math.min(step, queries - first);
        StridedTensor qb = part(q, b, first, rows);
        StridedTensor s = front(scores, heads, rows, keys);
        StridedTensor d = front(changes, heads, rows, keys);
        try (CudaTemporaries dense = new CudaTemporaries(out.device())) {
          StridedTensor gb = dense.contiguous(part(g, b, first, rows));
          StridedTensor ob = dense.contiguous(part(out, b, first, rows));
          CudaMatMul.matmul(qb, transposed(kb), s, scale, 0);
          CudaMatMul.matmul(gb, transposed(vb), d, 1, 0);
          Launch.on(device)
              .int64(gb.dataAddress())
              .int64(ob.dataAddress())
              .int64(means.dataAddress())
              .int64(width)
              .run(DELTA.of(dtype), heads * rows, width <= 64 ? 32 : 128);
          Launch.on(device)
              .int64(s.dataAddress())
              .int64(d.dataAddress())
              .int64(lse.dataAddress() + b * heads * queries * lse.dtype().byteSize())
              .int64(means.dataAddress())
              .int32((int) rows)
              .int64(keys)
              .int64(first)
              .int64(queries)
              .int32(causal ? 1 : 0)
              .run(GRADIENT.of(dtype), heads * rows, CudaSoftmax.threads(keys));
          double more = first == 0 ? 0 : 1;
          StridedTensor dq = front(toQ, heads, rows, width);
          CudaMatMul.matmul(d, kb, dq, scale, 0);
          CudaCopies.copy(dq, part(gradients[0], b, first, rows));
          CudaMatMul.matmul(transposed(d), qb, toK, scale, more);
          CudaMatMul.matmul(transposed(s), gb, toV, 1, more);
        }
      }
      CudaCopies.copy(toK, part(gradients[1], b, 0, keys));
      CudaCopies.copy(toV, part(gradients[2], b, 0, keys));
    }
  }
}
