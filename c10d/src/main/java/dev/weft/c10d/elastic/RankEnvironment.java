package dev.weft.c10d.elastic;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The variables that a rank finds about its place in the world, as torchrun sets them.
 *
 * @param node the number of this machine's agent, from 0
 * @param nodes the number of agents
 * @param nprocPerNode the ranks on each of them
 * @param masterAddress where the launcher's store is found
 * @param masterPort its port
 * @param runId the name of the run
 * @param restarts how often the ranks have been started again
 * @param maxRestarts how often they may be
 */
record RankEnvironment(
    int node,
    int nodes,
    int nprocPerNode,
    String masterAddress,
    int masterPort,
    String runId,
    int restarts,
    int maxRestarts) {
  static final String RESTART_COUNT = "TORCHELASTIC_RESTART_COUNT";
  static final String AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE";
  static final String OMP_NUM_THREADS = "OMP_NUM_THREADS";

  static final String ASYNC_ERROR_HANDLING = "TORCH_NCCL_ASYNC_ERROR_HANDLING";

  /** Tells a rank that its standard input is a pipe which ends with its launcher. */
  static final String LAUNCHED = "WEFT_LAUNCHED";

  /** Tells a rank that it leads a process group of its own. */
  static final String OWN_GROUP = "WEFT_PROCESS_GROUP";

  /** Tells a rank that its GPU is also that of other ranks. */
  static final String SHARED_GPU = "WEFT_SHARE_GPUS";

  /** The prefix of the keys of one attempt in the launcher's store, as under torchrun. */
  static String attemptPrefix(String restarts) {
    return "/worker/attempt_" + restarts;
  }

  int rank(int localRank) {
    return node * nprocPerNode + localRank;
  }

  /** What stands before each line of a rank's output. */
  String label(int localRank) {
    return nodes > 1 ? "[" + node + ":" + rank(localRank) + "]| " : "[" + localRank + "]| ";
  }

  int worldSize() {
    return nodes * nprocPerNode;
  }

  Map<String, String> of(int localRank) {
    var env = new LinkedHashMap<String, String>();
    env.put("RANK", text(rank(localRank)));
    env.put("WORLD_SIZE", text(worldSize()));
    env.put("LOCAL_RANK", text(localRank));
    env.put("LOCAL_WORLD_SIZE", text(nprocPerNode));
    env.put("GROUP_RANK", text(node));
    env.put("GROUP_WORLD_SIZE", text(nodes));
    env.put("ROLE_RANK", text(rank(localRank)));
    env.put("ROLE_WORLD_SIZE", text(worldSize()));
    env.put("ROLE_NAME", "default");
    env.put("MASTER_ADDR", masterAddress);
    env.put("MASTER_PORT", text(masterPort));
    env.put(RESTART_COUNT, text(restarts));
    env.put("TORCHELASTIC_MAX_RESTARTS", text(maxRestarts));
    env.put("TORCHELASTIC_RUN_ID", runId);
    env.put(AGENT_STORE, "True");
    env.put(LAUNCHED, "1");
    return env;
  }

  /** What lets a rank share its GPU with other processes of a NCCL world. */
  static Map<String, String> sharedGpu(int rank) {
    return Map.of(
        SHARED_GPU,
        "1",
        "NCCL_HOSTID",
        "weft-rank-" + rank,
        "NCCL_SOCKET_IFNAME",
        "lo",
        "NCCL_IB_DISABLE",
        "1",
        "NCCL_NVLS_ENABLE",
        "0");
  }

  private static String text(int number) {
    return Integer.toString(number);
  }
}
