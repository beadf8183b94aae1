package dev.weft.c10d.elastic;

/**
 * What all agents of a run must agree on.
 *
 * @param minNodes the fewest agents that may run
 * @param maxNodes the most
 * @param nprocPerNode the ranks of each
 * @param maxRestarts how often failing ranks are started again
 */
record Settings(int minNodes, int maxNodes, int nprocPerNode, int maxRestarts) {
  @Override
  public String toString() {
    return "--nnodes %d:%d --nproc-per-node %d --max-restarts %d"
        .formatted(minNodes, maxNodes, nprocPerNode, maxRestarts);
  }
}
