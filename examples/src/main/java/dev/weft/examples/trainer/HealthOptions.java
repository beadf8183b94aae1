package dev.weft.examples.trainer;

import picocli.CommandLine.Option;

/** What is looked after while training. */
final class HealthOptions {
  @Option(
      names = "--check-nan",
      description =
          "looks for NaN and infinities in every module and gradient, and ends with the name of the "
              + "first; slow")
  boolean nan;

  @Option(
      names = "--check-desync",
      paramLabel = "N",
      description =
          "every N steps compares the bits of parameters that replicas should have alike; 0: never "
              + "(default: 0)")
  int desync;

  @Option(
      names = "--check-stragglers",
      description = "says every --log-every steps which ranks the others wait for")
  boolean stragglers;

  void check() {
    if (desync < 0) {
      throw new IllegalArgumentException("--check-desync " + desync + "; expected 0 or more");
    }
  }
}
