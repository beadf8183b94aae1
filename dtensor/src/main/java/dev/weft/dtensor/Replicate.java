package dev.weft.dtensor;

/** The same values on every rank along the mesh dimension. */
public record Replicate() implements Placement {
  static final Replicate INSTANCE = new Replicate();

  @Override
  public String toString() {
    return "R";
  }
}
