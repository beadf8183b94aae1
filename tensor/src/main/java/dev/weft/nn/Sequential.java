package dev.weft.nn;

import dev.weft.tensor.Tensor;

/** Modules one after the other, named {@code 0}, {@code 1}, ... */
public final class Sequential extends Module {
  /** In this order. */
  public Sequential(Module... parts) {
    for (int i = 0; i < parts.length; i++) {
      Module unused = registerModule(Integer.toString(i), parts[i]);
    }
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    Tensor[] x = inputs;
    for (Module m : children().values()) {
      x = new Tensor[] {m.call(x)};
    }
    return x[0];
  }
}
