package dev.weft.bench;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.op.Interceptor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Device time by operator and dtype on the current stream, from a pair of events around each call.
 * The times include gaps where the host is behind. One thread.
 */
final class OpProfile implements Interceptor {
  private final int device;
  private final List<Call> calls = new ArrayList<>();

  private record Call(String name, CudaEvent start, CudaEvent end) {}

  OpProfile(int device) {
    this.device = device;
  }

  @Override
  public Tensor[] intercept(Interceptor.Call call) {
    if (call.depth() > 0) {
      return call.proceed();
    }
    CudaStream stream = CudaStream.current(device);
    CudaEvent start = new CudaEvent(device, true).record(stream);
    Tensor[] out = call.proceed();
    CudaEvent end = new CudaEvent(device, true).record(stream);
    calls.add(new Call(call.op() + " " + call.inputs()[0].dtype(), start, end));
    return out;
  }

  /** Milliseconds and calls by operator, the longest first. */
  String report() {
    Map<String, double[]> sums = new LinkedHashMap<>();
    for (Call c : calls) {
      c.end.synchronize();
      double[] sum = sums.computeIfAbsent(c.name, n -> new double[2]);
      sum[0] += c.start.millisecondsTo(c.end);
      sum[1]++;
      c.start.close();
      c.end.close();
    }
    calls.clear();
    StringBuilder text = new StringBuilder();
    sums.entrySet().stream()
        .sorted((a, b) -> Double.compare(b.getValue()[0], a.getValue()[0]))
        .forEach(
            e ->
                text.append(
                    String.format(
                        java.util.Locale.ROOT,
                        "%8.3f ms %5.0f calls  %s%n",
                        e.getValue()[0],
                        e.getValue()[1],
                        e.getKey())));
    return text.toString();
  }
}
