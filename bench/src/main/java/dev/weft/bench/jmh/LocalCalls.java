package dev.weft.bench.jmh;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.World;
import dev.weft.c10d.store.TcpStore;
import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Creation;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Calls of one rank: an operator, a redistribution, a store on this machine. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class LocalCalls {
  /** For JMH. */
  public LocalCalls() {}

  private static Tensor ones() {
    return TensorScope.outside(() -> Creation.ones(DType.FLOAT32, new long[] {8, 8}));
  }

  /** Two tensors. */
  @State(Scope.Benchmark)
  public static class Tensors {
    private final Tensor a = ones();
    private final Tensor b = ones();

    /** Makes them. */
    public Tensors() {}

    /** Lets them go. */
    @TearDown
    public void close() {
      a.close();
      b.close();
    }
  }

  /** A world of one with a tensor on its mesh. */
  @State(Scope.Benchmark)
  public static class OneRank {
    private final World world = Distributed.init();
    private final Tensor local = ones();
    private final DTensor sharded =
        DTensor.fromLocal(local, DeviceMesh.initDeviceMesh("cpu", 1), shard(0));

    /** Starts it. */
    public OneRank() {}

    /** Ends it. */
    @TearDown
    public void close() {
      local.close();
      world.close();
    }
  }

  /** A store that serves this process over a socket. */
  @State(Scope.Benchmark)
  public static class Store {
    private static final String KEY = "key";
    private static final byte[] VALUE = new byte[64];

    private final TcpStore store =
        TcpStore.at("127.0.0.1", 0).server(true).waitForWorkers(false).open();

    /** Starts it. */
    public Store() {
      store.set(KEY, VALUE);
    }

    /** Ends it. */
    @TearDown
    public void close() {
      store.close();
    }
  }

  /** An operator on tensors of 8 by 8. */
  @Benchmark
  public void cpuAdd(Tensors tensors) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor unused = tensors.a.add(tensors.b);
    }
  }

  /** From a shard to the whole, where one rank has it all. */
  @Benchmark
  public void redistribute(OneRank rank) {
    try (TensorScope scope = TensorScope.open()) {
      Tensor unused = rank.sharded.redistribute(replicate());
    }
  }

  /** A value of 64 bytes is set. */
  @Benchmark
  public void storeSet(Store store) {
    store.store.set(Store.KEY, Store.VALUE);
  }

  /** A value of 64 bytes is got. */
  @Benchmark
  public byte[] storeGet(Store store) {
    return store.store.get(Store.KEY);
  }
}
