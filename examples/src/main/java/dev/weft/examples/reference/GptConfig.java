package dev.weft.examples.reference;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;

/** The hyper-parameters of the byte-level decoder. */
@JsonIgnoreProperties(ignoreUnknown = true)
public record GptConfig(
    long seed,
    int vocab,
    @JsonProperty("d_model") int dModel,
    @JsonProperty("n_heads") int nHeads,
    @JsonProperty("n_layers") int nLayers,
    @JsonProperty("d_ff") int dFf,
    int seq,
    @JsonProperty("norm_eps") double normEps,
    @JsonProperty("rope_theta") double ropeTheta,
    int batch,
    int steps,
    double lr,
    int warmup,
    double[] betas,
    double eps,
    @JsonProperty("weight_decay") double weightDecay,
    double clip) {

  /** The size of one attention head. */
  public int headSize() {
    return dModel / nHeads;
  }

  /** The reference configuration. */
  public static GptConfig reference() {
    return Resources.read("config_gpt.json", GptConfig.class);
  }

  /** The model's shape. */
  public DecoderConfig decoder() {
    return new DecoderConfig(
        seed, vocab, dModel, nHeads, nHeads, nLayers, dFf, seq, normEps, ropeTheta, false);
  }

  /** The learning rate of a step: linear warm-up, then half a cosine down to zero. */
  public double learningRate(int step) {
    if (step < warmup) {
      return lr * (step + 1) / warmup;
    }
    return lr * 0.5 * (1 + Math.cos(Math.PI * (step - warmup) / (steps - warmup)));
  }

  /** The same with another number of steps. */
  public GptConfig withSteps(int n) {
    return new GptConfig(
        seed,
        vocab,
        dModel,
        nHeads,
        nLayers,
        dFf,
        seq,
        normEps,
        ropeTheta,
        batch,
        n,
        lr,
        warmup,
        betas,
        eps,
        weightDecay,
        clip);
  }
}
