package dev.weft.examples.reference;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;

/** The hyper-parameters of the two-layer classifier. */
@JsonIgnoreProperties(ignoreUnknown = true)
public record MlpConfig(
    long seed,
    @JsonProperty("d_in") int dIn,
    @JsonProperty("d_hidden") int dHidden,
    @JsonProperty("n_classes") int nClasses,
    @JsonProperty("n_samples") int nSamples,
    int batch,
    int steps,
    double lr,
    double momentum) {

  /** The reference configuration. */
  public static MlpConfig reference() {
    return Resources.read("config_mlp.json", MlpConfig.class);
  }
}
