package dev.weft.tensor.cpu;

import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.openblas.global.openblas;

/** Matrix products by OpenBLAS on raw addresses. Any thread; each has its own pointer objects. */
final class Blas {
  private static final ThreadLocal<Blas> CURRENT = ThreadLocal.withInitial(Blas::new);

  private final Floats fa = new Floats();
  private final Floats fb = new Floats();
  private final Floats fc = new Floats();
  private final Doubles da = new Doubles();
  private final Doubles db = new Doubles();
  private final Doubles dc = new Doubles();

  private Blas() {
    BlasThreads.use();
  }

  static Blas get() {
    return CURRENT.get();
  }

  private static final class Floats extends FloatPointer {
    private static final long serialVersionUID = 1;

    Floats() {
      super((Pointer) null);
    }

    Floats at(long where) {
      address = where;
      return this;
    }
  }

  private static final class Doubles extends DoublePointer {
    private static final long serialVersionUID = 1;

    Doubles() {
      super((Pointer) null);
    }

    Doubles at(long where) {
      address = where;
      return this;
    }
  }

  /** Row-major c[m,n] = alpha op(a) op(b) + beta c in float32. */
  void sgemm(
      boolean ta,
      boolean tb,
      int m,
      int n,
      int k,
      float alpha,
      long a,
      int lda,
      long b,
      int ldb,
      float beta,
      long c,
      int ldc) {
    openblas.cblas_sgemm(
        openblas.CblasRowMajor,
        ta ? openblas.CblasTrans : openblas.CblasNoTrans,
        tb ? openblas.CblasTrans : openblas.CblasNoTrans,
        m,
        n,
        k,
        alpha,
        fa.at(a),
        lda,
        fb.at(b),
        ldb,
        beta,
        fc.at(c),
        ldc);
  }

  /** Row-major c[m,n] = alpha op(a) op(b) + beta c in float64. */
  void dgemm(
      boolean ta,
      boolean tb,
      int m,
      int n,
      int k,
      double alpha,
      long a,
      int lda,
      long b,
      int ldb,
      double beta,
      long c,
      int ldc) {
    openblas.cblas_dgemm(
        openblas.CblasRowMajor,
        ta ? openblas.CblasTrans : openblas.CblasNoTrans,
        tb ? openblas.CblasTrans : openblas.CblasNoTrans,
        m,
        n,
        k,
        alpha,
        da.at(a),
        lda,
        db.at(b),
        ldb,
        beta,
        dc.at(c),
        ldc);
  }
}
