package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclBroadcast;
import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclReduce;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import dev.weft.tensor.StridedTensor;
import java.util.List;
import org.bytedeco.cuda.cudart.CUstream_st;

/** Collectives whose parts differ in size: a group of one operation a rank. Stateless. */
final class Uneven {
  private Uneven() {}

  /** The operation of one root. */
  private interface Part {
    int run(int root, NcclCommunicator communicator, CUstream_st stream);
  }

  /** Each rank broadcasts its input to the output of its position. */
  static NcclCommunicator.Body allGather(
      Staging staging, List<StridedTensor> outputs, StridedTensor input, int rank) {
    int n = outputs.size();
    long[] to = new long[n];
    long[] count = new long[n];
    for (int r = 0; r < n; r++) {
      StridedTensor out = outputs.get(r);
      to[r] = staging.out(out);
      count[r] = NcclTypes.movedCount(out.dtype(), out.numel());
    }
    boolean shared = outputs.stream().anyMatch(o -> o.storage() == input.storage());
    long from = shared ? staging.copy(input) : staging.in(input);
    int dtype = NcclTypes.moved(input.dtype());
    return all(
        n,
        (r, c, stream) ->
            count[r] == 0
                ? ncclSuccess
                : ncclBroadcast(
                    c.source(r == rank ? from : to[r]),
                    c.target(to[r]),
                    count[r],
                    dtype,
                    r,
                    c.handle(),
                    stream));
  }

  /** Each rank is the root of a reduction of all inputs of its position. */
  static NcclCommunicator.Body reduceScatter(
      Staging staging,
      StridedTensor output,
      List<StridedTensor> inputs,
      int rank,
      int dtype,
      Reduction by) {
    int n = inputs.size();
    long[] from = new long[n];
    long[] count = new long[n];
    for (int r = 0; r < n; r++) {
      StridedTensor in = inputs.get(r);
      boolean shared = r != rank && in.storage() == output.storage();
      from[r] = shared ? staging.copy(in) : staging.in(in);
      count[r] = in.numel();
    }
    long to = staging.out(output);
    return (c, stream) ->
        by.with(
            c,
            code ->
                all(
                        n,
                        (r, comm, s) ->
                            count[r] == 0
                                ? ncclSuccess
                                : ncclReduce(
                                    comm.source(from[r]),
                                    comm.target(r == rank ? to : from[r]),
                                    count[r],
                                    dtype,
                                    code,
                                    r,
                                    comm.handle(),
                                    s))
                    .run(c, stream));
  }

  private static NcclCommunicator.Body all(int n, Part part) {
    return (c, stream) -> {
      int begun = ncclGroupStart();
      if (begun != ncclSuccess) {
        return begun;
      }
      int bad = ncclSuccess;
      for (int r = 0; r < n; r++) {
        int code = part.run(r, c, stream);
        if (code != ncclSuccess && code != ncclInProgress && bad == ncclSuccess) {
          bad = code;
        }
      }
      int code = ncclGroupEnd();
      return bad != ncclSuccess ? bad : code;
    };
  }
}
