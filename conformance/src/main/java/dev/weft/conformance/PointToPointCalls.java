package dev.weft.conformance;

import static dev.weft.conformance.CollectivesRunner.vector;
import static dev.weft.conformance.Json.longs;
import static dev.weft.conformance.RecordedTensors.like;
import static dev.weft.conformance.RecordedTensors.zeros;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.P2POp;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The recorded cases of sends and receives. */
final class PointToPointCalls {
  private PointToPointCalls() {}

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
        anySource(group);
        yield List.of();
      }
      case "batch_isend_irecv/full_exchange" -> exchange(group);
      case "work/p2p" -> {
        if (rank < 2) {
          StridedTensor t = vector(rank);
          Work work = rank == 0 ? group.isend(t, 1, 0) : group.irecv(t, 0, 0);
          work.await();
          CollectivesRunner.awaitDevice(work, t);
          if (!work.isCompleted()) {
            throw new CaseRunner.Mismatch("an awaited work is not completed");
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

  /** Everyone sends its rank to rank 0, which does not say of whom it receives. */
  private static void anySource(ProcessGroup group) {
    if (group.rank() > 0) {
      Work unused = group.send(vector(group.rank()), 0, 0);
      return;
    }
    Set<Integer> sources = new HashSet<>();
    for (int i = 1; i < group.size(); i++) {
      StridedTensor t = vector(0);
      Work work = group.recv(t, ProcessGroup.ANY_SOURCE, 0);
      Json.requireEqual("source of the value", (int) t.item(), work.sourceRank());
      sources.add(work.sourceRank());
    }
    Json.requireEqual("number of sources", group.size() - 1, sources.size());
  }

  /** Everyone sends [own rank, receiver's rank] to everyone. */
  private static List<StridedTensor> exchange(ProcessGroup group) {
    List<StridedTensor> got = new ArrayList<>();
    List<P2POp> ops = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      StridedTensor t = vector(0, 0);
      got.add(t);
      if (r != group.rank()) {
        ops.add(P2POp.isend(vector(group.rank(), r), r));
        ops.add(P2POp.irecv(t, r));
      }
    }
    List<Work> works = Distributed.batchIsendIrecv(ops);
    works.forEach(Work::await);
    Json.requireEqual("number of works", ops.size(), works.size());
    return got;
  }
}
