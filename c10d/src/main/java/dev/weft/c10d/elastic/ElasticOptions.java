package dev.weft.c10d.elastic;

import java.time.Duration;

/**
 * How the agents of a run find each other, and how patient they are. Immutable; set what differs
 * from the defaults.
 *
 * @param minNodes the fewest agents that may run
 * @param maxNodes the most
 * @param host where the rendezvous store is served, by the first agent of that machine
 * @param port its port; 0 for a free one where there is one agent
 * @param maxRestarts how often ranks are started again after a failure
 * @param joinTimeout how long a round may take to have {@code minNodes} agents
 * @param lastCall how long it waits for more, once there are that many
 * @param heartbeatInterval how often an agent shows that it lives
 * @param heartbeatTimeout how long it may be silent before the others go on without it
 */
public record ElasticOptions(
    int minNodes,
    int maxNodes,
    String host,
    int port,
    int maxRestarts,
    Duration joinTimeout,
    Duration lastCall,
    Duration heartbeatInterval,
    Duration heartbeatTimeout) {
  /** Checks the numbers. */
  public ElasticOptions {
    if (minNodes < 1 || maxNodes < minNodes) {
      throw new IllegalArgumentException(
          "nnodes is %d:%d; expected MIN:MAX with 1 <= MIN <= MAX".formatted(minNodes, maxNodes));
    }
    if (port < 0 || port > 65_535 || (port == 0 && maxNodes > 1)) {
      throw new IllegalArgumentException(
          "the port of the rendezvous endpoint is %d; expected 1 to 65535, the same for all agents"
              .formatted(port));
    }
    if (maxRestarts < 0) {
      throw new IllegalArgumentException("maxRestarts is " + maxRestarts + "; expected 0 or more");
    }
    if (heartbeatInterval.isZero()
        || heartbeatInterval.isNegative()
        || heartbeatTimeout.compareTo(heartbeatInterval.multipliedBy(2)) < 0) {
      throw new IllegalArgumentException(
          "heartbeatInterval is %s and heartbeatTimeout %s; expected an interval above zero and a timeout of two of them or more"
              .formatted(heartbeatInterval, heartbeatTimeout));
    }
    if (joinTimeout.isNegative() || lastCall.isNegative()) {
      throw new IllegalArgumentException(
          "joinTimeout is %s and lastCall %s; expected zero or more"
              .formatted(joinTimeout, lastCall));
    }
  }

  /**
   * Says how many agents meet where: no restarts, ten minutes to join, three seconds for the last
   * call, a heartbeat every two seconds and ten seconds without one.
   *
   * @param minNodes the fewest agents
   * @param maxNodes the most
   * @param host the host of the rendezvous store
   * @param port its port
   * @return the options
   */
  public static ElasticOptions of(int minNodes, int maxNodes, String host, int port) {
    return new ElasticOptions(
        minNodes,
        maxNodes,
        host,
        port,
        0,
        Duration.ofMinutes(10),
        Duration.ofSeconds(3),
        Duration.ofSeconds(2),
        Duration.ofSeconds(10));
  }

  /** The same with a number of restarts. */
  public ElasticOptions withMaxRestarts(int maxRestarts) {
    return new ElasticOptions(
        minNodes,
        maxNodes,
        host,
        port,
        maxRestarts,
        joinTimeout,
        lastCall,
        heartbeatInterval,
        heartbeatTimeout);
  }

  /** The same with other limits of joining. */
  public ElasticOptions withJoining(Duration joinTimeout, Duration lastCall) {
    return new ElasticOptions(
        minNodes,
        maxNodes,
        host,
        port,
        maxRestarts,
        joinTimeout,
        lastCall,
        heartbeatInterval,
        heartbeatTimeout);
  }

  /** The same with other heartbeats. */
  public ElasticOptions withHeartbeat(Duration interval, Duration timeout) {
    return new ElasticOptions(
        minNodes, maxNodes, host, port, maxRestarts, joinTimeout, lastCall, interval, timeout);
  }
}
