package dev.weft.examples.trainer;

import dev.weft.examples.reference.NumberStream;

/**
 * Where each sample of an endless order starts. Samples have numbers, and a number alone decides:
 * there is no state but how many were taken, ranks need not talk, and an order goes on anywhere
 * with any number of ranks. Immutable, any thread.
 */
@FunctionalInterface
public interface Sampler {
  /**
   * Where sample {@code number} starts.
   *
   * @param number from 0
   */
  long start(long number);

  /**
   * Any positions, independently of each other.
   *
   * @param tokens how many there are
   * @param seq of a sample, which the token after it follows
   */
  static Sampler random(long tokens, int seq, long seed) {
    NumberStream positions = new NumberStream(seed, "data.batch");
    return number -> positions.below(number, tokens - seq);
  }

  /**
   * All windows of {@code seq} tokens that lie side by side, in an order of its own for each epoch.
   *
   * @param tokens how many there are
   */
  static Sampler shuffled(long tokens, int seq, long seed) {
    long windows = (tokens - 1) / seq;
    return number -> {
      long epoch = number / windows;
      return new Permutation(seed, epoch, windows).at(number % windows) * seq;
    };
  }
}
