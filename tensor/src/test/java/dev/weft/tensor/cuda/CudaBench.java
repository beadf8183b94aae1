package dev.weft.tensor.cuda;

import static org.bytedeco.cuda.global.cudart.cudaMemcpyAsync;
import static org.bytedeco.cuda.global.cudart.cudaMemcpyDeviceToDevice;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Foreach;
import dev.weft.tensor.op.Gated;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Norms;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Softmaxes;
import dev.weft.tensor.op.Updates;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Measures kernels on a GPU and prints a line of JSON for each: what, value, unit, and what it is
 * compared with. A figure is the median of several runs, each of enough calls to fill the queue.
 */
public final class CudaBench {
  private static final Device GPU = Device.cuda(0);
  private static final int RUNS = 7;

  private CudaBench() {}

  private static Tensor random(DType dtype, long... shape) {
    // The CPU's numbers, a few of them repeated: large tensors need only be no constants.
    StridedTensor t = Tensors.empty(dtype, GPU, shape);
    long n = t.numel();
    int some = (int) Math.min(n, 1 << 20);
    Tensor values = Samples.normal(1, dtype, some).to(GPU);
    StridedTensor flat = t.withLayout(new long[] {n}, new long[] {1}, 0);
    for (long at = 0; at < n; at += some) {
      long size = Math.min(some, n - at);
      CudaCopies.copy(
          (StridedTensor) values.slice(0, 0, size), (StridedTensor) flat.slice(0, at, at + size));
    }
    return t;
  }

  /** Milliseconds of one call on the device. */
  private static double device(int calls, Runnable call) {
    double[] times = new double[RUNS];
    call.run();
    Cuda.synchronize(0);
    for (int r = 0; r < RUNS; r++) {
      try (CudaEvent start = new CudaEvent(0, true);
          CudaEvent end = new CudaEvent(0, true)) {
        CudaEvent unused = start.record(CudaStream.current(0));
        for (int i = 0; i < calls; i++) {
          call.run();
        }
        unused = end.record(CudaStream.current(0));
        end.synchronize();
        times[r] = start.millisecondsTo(end) / calls;
      }
    }
    Arrays.sort(times);
    return times[RUNS / 2];
  }

  /** A call whose results go at once. */
  private static Runnable op(Runnable body) {
    return () -> {
      TensorScope scope = TensorScope.open();
      try {
        body.run();
      } finally {
        scope.close();
      }
    };
  }

  private static void print(String bench, String params, double value, String unit) {
    System.out.printf(
        Locale.ROOT,
        "{\"bench\": \"%s\", \"impl\": \"weft\", \"params\": \"%s\", \"value\": %.4g, \"unit\":"
            + " \"%s\"}%n",
        bench,
        params,
        value,
        unit);
  }

  /** Runs all, or those whose names begin with an argument. */
  public static void main(String[] args) {
    Cuda.require();
    List<Runnable> all = new ArrayList<>();
    add(all, args, "matmul", CudaBench::matmul);
    add(all, args, "bandwidth", CudaBench::bandwidth);
    add(all, args, "rows", CudaBench::rows);
    add(all, args, "attention", CudaBench::attention);
    add(all, args, "host", CudaBench::host);
    add(all, args, "adamw", CudaBench::adamw);
    Autograd.noGrad(() -> all.forEach(b -> op(b).run()));
    System.out.println("{\"kernels\": \"" + KernelCompiler.statistics() + "\"}");
  }

  private static void add(List<Runnable> all, String[] args, String name, Runnable bench) {
    if (args.length == 0 || Arrays.stream(args).anyMatch(name::startsWith)) {
      all.add(bench);
    }
  }

  private static void matmul() {
    int n = 8192;
    Tensor a = random(DType.BFLOAT16, n, n);
    Tensor b = random(DType.BFLOAT16, n, n);
    StridedTensor c = Tensors.empty(DType.BFLOAT16, GPU, n, n);
    double mine = device(10, op(() -> MatMul.mm(a, b)));
    long x = ((StridedTensor) a).dataAddress();
    long y = ((StridedTensor) b).dataAddress();
    long z = c.dataAddress();
    DType t = DType.BFLOAT16;
    double bare =
        device(
            10,
            () ->
                CudaBlas.of(0)
                    .gemm(t, t, false, false, n, n, n, 1, x, n, 0, y, n, 0, 0, z, n, 0, 1));
    print("gpu_matmul", "bf16 8192^3", 2.0 * n * n * n / mine / 1e9, "TFLOP/s");
    print("gpu_matmul_over_cublas", "bf16 8192^3", bare / mine, "ratio");
    Tensor f = random(DType.FLOAT32, 4096, 4096);
    for (boolean tf32 : new boolean[] {false, true}) {
      CudaMath.allowTf32(tf32);
      double ms = device(10, op(() -> MatMul.mm(f, f)));
      print(
          "gpu_matmul",
          (tf32 ? "tf32" : "fp32") + " 4096^3",
          2 * Math.pow(4096, 3) / ms / 1e9,
          "TFLOP/s");
    }
    CudaMath.allowTf32(false);
  }

  private static void bandwidth() {
    long n = 256L << 20;
    Tensor a = random(DType.BFLOAT16, n);
    Tensor b = random(DType.BFLOAT16, n);
    StridedTensor c = Tensors.empty(DType.BFLOAT16, GPU, n);
    RawPointer from = new RawPointer(((StridedTensor) a).dataAddress());
    RawPointer to = new RawPointer(c.dataAddress());
    double copy =
        device(
            10,
            () ->
                CudaCheck.runtime(
                    "cudaMemcpyAsync",
                    cudaMemcpyAsync(
                        to,
                        from,
                        2 * n,
                        cudaMemcpyDeviceToDevice,
                        CudaStream.current(0).handle())));
    print("gpu_memcpy", "device to device 512 MiB", 4.0 * n / copy / 1e6, "GB/s");
    print("gpu_copy", "bf16 512 MiB", 4.0 * n / device(10, op(() -> Casts.copy(a))) / 1e6, "GB/s");
    print(
        "gpu_add",
        "bf16 512 MiB",
        6.0 * n / device(10, op(() -> Pointwise.add(a, b))) / 1e6,
        "GB/s");
    print(
        "gpu_cast",
        "bf16 to fp32",
        6.0 * n / device(10, op(() -> Casts.to(a, DType.FLOAT32))) / 1e6,
        "GB/s");
    print("gpu_swiglu", "bf16", 6.0 * n / device(10, op(() -> Gated.swiglu(a, b))) / 1e6, "GB/s");
  }

  private static void rows() {
    for (int width : new int[] {1024, 4096}) {
      long rows = (128L << 20) / width;
      Tensor x = random(DType.BFLOAT16, rows, width);
      Tensor w = random(DType.BFLOAT16, width);
      double bytes = 2.0 * rows * width;
      String params = "bf16 " + rows + " x " + width;
      long[] shape = {width};
      print(
          "gpu_softmax",
          params,
          2 * bytes / device(10, op(() -> Softmaxes.softmax(x, 1))) / 1e6,
          "GB/s");
      print(
          "gpu_rms_norm",
          params,
          2 * bytes / device(10, op(() -> Norms.rmsNorm(x, shape, w, 1e-5))) / 1e6,
          "GB/s");
      Attrs a = Attrs.of(shape, 1e-5);
      print(
          "gpu_rms_norm_backward",
          params,
          3 * bytes / device(10, op(() -> call("rms_norm_backward", a, x, x, w))) / 1e6,
          "GB/s");
      print(
          "gpu_rms_norm_weight_backward",
          params,
          2 * bytes / device(10, op(() -> call("rms_norm_weight_backward", a, x, x))) / 1e6,
          "GB/s");
    }
  }

  private static Tensor[] call(String name, Attrs a, Tensor... in) {
    return Dispatcher.callAll(Catalogue.get(name), a, in);
  }

  private static void attention() {
    attention("bf16", DType.BFLOAT16);
    attention("fp32", DType.FLOAT32);
    CudaMath.allowTf32(true);
    attention("tf32", DType.FLOAT32);
    CudaMath.allowTf32(false);
  }

  private static void attention(String name, DType dtype) {
    int batch = 8;
    int heads = 16;
    for (int[] s : new int[][] {{1024, 64}, {1024, 128}, {8192, 64}}) {
      long n = s[0];
      long b = n > 1024 ? 1 : batch;
      Tensor x = random(dtype, b, n, heads, s[1]);
      Attrs a = Attrs.of(1 / Math.sqrt(s[1]), true, 1);
      String op = "scaled_dot_product_attention";
      Tensor[] out = call(op, a, x, x, x);
      // Half of the scores are seen.
      double flops = 4.0 * b * heads * n * n * s[1] / 2;
      String params = name + " causal " + Arrays.toString(x.shape());
      print(
          "gpu_attention",
          params,
          flops / device(20, op(() -> call(op, a, x, x, x))) / 1e9,
          "TFLOP/s");
      print(
          "gpu_attention_backward",
          params,
          2.5
              * flops
              / device(20, op(() -> call(op + "_backward", a, x, x, x, x, out[0], out[1])))
              / 1e9,
          "TFLOP/s");
    }
  }

  private static void host() {
    Tensor a = random(DType.FLOAT32, 64, 64);
    Tensor b = random(DType.FLOAT32, 64, 64);
    Tensor h = random(DType.BFLOAT16, 64, 64);
    hostTime("add", "fp32 64 x 64", () -> Pointwise.add(a, b));
    hostTime("mm", "bf16 64 x 64", () -> MatMul.mm(h, h));
    hostTime("swiglu", "bf16 64 x 64", () -> Gated.swiglu(h, h));
    hostTime("rms_norm", "bf16 64 x 64", () -> Norms.rmsNorm(h, new long[] {64}, null, 1e-5));
  }

  private static void hostTime(String name, String params, Runnable call) {
    Runnable body = op(call);
    double best = Double.MAX_VALUE;
    for (int r = 0; r < 40; r++) {
      Cuda.synchronize(0);
      long start = System.nanoTime();
      for (int i = 0; i < 500; i++) {
        body.run();
      }
      best = Math.min(best, (System.nanoTime() - start) / 500e3);
    }
    Cuda.synchronize(0);
    print("gpu_host_" + name, params, best, "us");
  }

  private static void adamw() {
    int count = 100;
    long n = 1_500_000;
    Tensor[] all = new Tensor[4 * count];
    List<Tensor> gradients = new ArrayList<>();
    for (int i = 0; i < all.length; i++) {
      all[i] = i % 4 == 3 ? Creation.onesLike(random(DType.FLOAT32, n)) : random(DType.FLOAT32, n);
      if (i % 4 == 1) {
        gradients.add(all[i]);
      }
    }
    double ms = device(10, () -> Updates.adamwAll(all, 1e-6, 0.9, 0.95, 1e-8, 0.1, 10));
    print("gpu_adamw", "100 x 1.5 M fp32", 28.0 * count * n / ms / 1e6, "GB/s");
    double norm = device(10, op(() -> Foreach.squares(gradients)));
    print("gpu_foreach_squares", "100 x 1.5 M fp32", 4.0 * count * n / norm / 1e6, "GB/s");
  }
}
