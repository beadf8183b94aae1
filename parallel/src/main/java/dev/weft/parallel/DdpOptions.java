package dev.weft.parallel;

/**
 * How {@link Ddp} works; the same on all ranks.
 *
 * @param bucketBytes how much travels together; 25 MiB at first
 * @param firstBucketBytes the same of the first bucket, which starts the communication early; 1 MiB
 *     at first
 * @param findUnusedParameters whether parameters may take no part in a backward. Those of a rank
 *     then count as zero; those of all ranks keep the gradient they have. If not, a backward that
 *     leaves some out fails and names them. To find them the host waits once a step
 * @param broadcastBuffers whether each forward in training starts with the first rank's buffers
 * @param hook how a bucket is averaged
 */
public record DdpOptions(
    long bucketBytes,
    long firstBucketBytes,
    boolean findUnusedParameters,
    boolean broadcastBuffers,
    CommunicationHook hook) {
  /** What {@link Ddp#of(dev.weft.nn.Module, dev.weft.mesh.DeviceMesh)} takes. */
  public static final DdpOptions DEFAULT =
      new DdpOptions(25L << 20, 1L << 20, false, true, CommunicationHook.allReduce());

  /** Checks the sizes. */
  public DdpOptions {
    if (bucketBytes < 1 || firstBucketBytes < 1) {
      throw new IllegalArgumentException(
          "bucketBytes is "
              + bucketBytes
              + " and firstBucketBytes "
              + firstBucketBytes
              + "; expected 1 or more");
    }
  }

  /** With another bucket size. */
  public DdpOptions withBucketBytes(long bytes) {
    return new DdpOptions(bytes, firstBucketBytes, findUnusedParameters, broadcastBuffers, hook);
  }

  /** With another size of the first bucket. */
  public DdpOptions withFirstBucketBytes(long bytes) {
    return new DdpOptions(bucketBytes, bytes, findUnusedParameters, broadcastBuffers, hook);
  }

  /** With or without parameters that take no part. */
  public DdpOptions withFindUnusedParameters(boolean find) {
    return new DdpOptions(bucketBytes, firstBucketBytes, find, broadcastBuffers, hook);
  }

  /** With or without the broadcast of buffers. */
  public DdpOptions withBroadcastBuffers(boolean broadcast) {
    return new DdpOptions(bucketBytes, firstBucketBytes, findUnusedParameters, broadcast, hook);
  }

  /** With another way of averaging. */
  public DdpOptions withHook(CommunicationHook other) {
    return new DdpOptions(
        bucketBytes, firstBucketBytes, findUnusedParameters, broadcastBuffers, other);
  }
}
