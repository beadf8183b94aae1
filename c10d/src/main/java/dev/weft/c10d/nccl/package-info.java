/**
 * The NCCL backend: collectives of CUDA tensors. A communicator for each group and device, one for
 * each pair of ranks that exchange messages, and the streams and events that order them with other
 * work.
 */
@NullMarked
package dev.weft.c10d.nccl;

import org.jspecify.annotations.NullMarked;
