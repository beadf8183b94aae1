package dev.weft.c10d.conformance;

import static dev.weft.c10d.conformance.CollectiveCases.vector;
import static dev.weft.c10d.conformance.GoldenTensors.like;
import static dev.weft.c10d.conformance.GoldenTensors.longs;
import static dev.weft.c10d.conformance.GoldenTensors.zeros;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.List;

/** The recorded cases of sends and receives. */
final class PointToPointCases {
  private PointToPointCases() {}

  static List<StridedTensor> perform(
      JsonNode recorded, ProcessGroup group, List<StridedTensor> in) {
    int rank = group.rank();
    int n = group.size();
    JsonNode params = recorded.get("params");
    return switch (recorded.get("name").asText().replaceAll("/(shape|dtype)/.*", "")) {
      case "send_recv" -> sendRecv(recorded, group, in);
      case "send_recv/order_kept" -> {
        List<StridedTensor> got = new ArrayList<>();
        for (int i = 1; i <= 3 && rank < 2; i++) {
          StridedTensor t = vector(rank == 0 ? i : 0);
          Work unused = rank == 0 ? group.send(t, 1, 0) : group.recv(t, 0, 0);
          got.add(t);
        }
        yield rank == 1 ? got : List.of();
      }
      case "send_recv/tags_select" -> {
        List<StridedTensor> got = new ArrayList<>();
        if (rank == 0) {
          Work seven = group.isend(vector(7), 1, 7);
          Work five = group.isend(vector(5), 1, 5);
          seven.await();
          five.await();
        } else if (rank == 1) {
          for (long tag : longs(params.get("recv_order"))) {
            StridedTensor t = vector(0);
            Work unused = group.recv(t, 0, (int) tag);
            got.add(t);
          }
        }
        yield got;
      }
      case "isend_irecv_ring" -> {
        StridedTensor out = like(in.get(0));
        Work send = group.isend(in.get(0), (rank + 1) % n, 0);
        Work receive = group.irecv(out, (rank + n - 1) % n, 0);
        send.await();
        receive.await();
        yield List.of(out);
      }
      case "recv/any_source" -> {
        double sum = 0;
        if (rank == 0) {
          for (int i = 1; i < n; i++) {
            StridedTensor t = vector(0);
            Work unused = group.recv(t, ProcessGroup.ANY_SOURCE, 0);
            sum += t.item();
          }
          if (sum != n * (n - 1) / 2.0) {
            throw new AssertionError("received a sum of " + sum);
          }
        } else {
          Work unused = group.send(vector(rank), 0, 0);
        }
        yield List.of();
      }
      case "batch_isend_irecv/full_exchange" -> exchange(group);
      case "work/p2p" -> {
        if (rank < 2) {
          StridedTensor t = vector(rank);
          Work work = rank == 0 ? group.isend(t, 1, 0) : group.irecv(t, 0, 0);
          work.await();
          if (!work.isCompleted()) {
            throw new AssertionError("an awaited work is not completed");
          }
        }
        yield List.of();
      }
      default -> throw new AssertionError("no code for " + recorded.get("name"));
    };
  }

  private static List<StridedTensor> sendRecv(
      JsonNode recorded, ProcessGroup group, List<StridedTensor> in) {
    if (group.rank() == 0) {
      Work unused = group.send(in.get(0), 1, 0);
    } else if (group.rank() == 1) {
      JsonNode out = recorded.get("ranks").get(1).get("out").get(0);
      StridedTensor t = zeros(DType.of(out.get("dtype").asText()), longs(out.get("shape")));
      Work unused = group.recv(t, 0, 0);
      return List.of(t);
    }
    return List.of();
  }

  /** Everyone sends [own rank, receiver's rank] to everyone. */
  private static List<StridedTensor> exchange(ProcessGroup group) {
    List<StridedTensor> got = new ArrayList<>();
    List<Work> works = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      StridedTensor t = vector(0, 0);
      got.add(t);
      if (r != group.rank()) {
        works.add(group.isend(vector(group.rank(), r), r, 0));
        works.add(group.irecv(t, r, 0));
      }
    }
    works.forEach(Work::await);
    return got;
  }
}
