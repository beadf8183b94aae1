package dev.weft.parallel;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.dtensor.Gradients;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Creation;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Averages gradients in buckets while backward goes on. A bucket starts when all its gradients are
 * there and all buckets before it have started, so that the order is the same on all ranks.
 */
final class Reducer {
  private record Kind(DType dtype, Device device) {}

  private final List<Tensor> parameters;
  private final List<String> names;
  private final ProcessGroup group;
  private final DdpOptions options;
  private final IdentityHashMap<Tensor, Integer> positions = new IdentityHashMap<>();
  private List<Bucket> buckets;
  private Bucket[] bucketOf;
  private boolean rebuilt;
  // Of the backward that is running.
  private boolean running;
  private boolean[] arrived;
  private final List<Integer> arrivals = new ArrayList<>();
  private int started;
  private long averaged;

  Reducer(Map<String, Tensor> named, ProcessGroup group, DdpOptions options) {
    IdentityHashMap<Tensor, String> distinct = new IdentityHashMap<>();
    this.parameters = new ArrayList<>();
    this.names = new ArrayList<>();
    named.forEach(
        (name, p) -> {
          if (p.requiresGrad() && distinct.putIfAbsent(p, name) == null) {
            positions.put(p, parameters.size());
            parameters.add(p);
            names.add(name);
          }
        });
    this.group = group;
    this.options = options;
    this.arrived = new boolean[parameters.size()];
    this.bucketOf = new Bucket[parameters.size()];
    List<Integer> order = new ArrayList<>();
    for (int i = parameters.size() - 1; i >= 0; i--) {
      order.add(i);
    }
    this.buckets = build(order);
  }

  List<Tensor> parameters() {
    return parameters;
  }

  /** The parameters of each bucket by position of registration, for tests. */
  List<List<Integer>> order() {
    return buckets.stream().map(b -> List.copyOf(b.members)).toList();
  }

  private List<Bucket> build(List<Integer> order) {
    List<Bucket> list = new ArrayList<>();
    Map<Kind, Bucket> open = new HashMap<>();
    for (int i : order) {
      Tensor p = parameters.get(i);
      Kind kind = new Kind(p.dtype(), p.device());
      Bucket b = open.get(kind);
      if (b == null) {
        b = new Bucket(list.size());
        list.add(b);
        open.put(kind, b);
      }
      b.members.add(i);
      b.elements += Parts.of(p).numel();
      bucketOf[i] = b;
      long limit = b.index == 0 ? options.firstBucketBytes() : options.bucketBytes();
      if (b.elements * kind.dtype.byteSize() >= limit) {
        open.remove(kind);
      }
    }
    return list;
  }

  /** A parameter's gradient is complete; called in backward. */
  void arrived(Tensor p) {
    if (!running) {
      begin();
    }
    int i = Objects.requireNonNull(positions.get(p));
    arrived[i] = true;
    arrivals.add(i);
    bucketOf[i].missing--;
    while (started < buckets.size() && buckets.get(started).missing == 0) {
      start(buckets.get(started));
    }
  }

  private void begin() {
    running = true;
    started = 0;
    arrivals.clear();
    arrived = new boolean[parameters.size()];
    for (Bucket b : buckets) {
      b.missing = b.members.size();
      b.drop();
    }
    Autograd.afterBackward(this::finish);
  }

  private void start(Bucket b) {
    started++;
    b.start(true);
  }

  /** How many backwards have been averaged. */
  long averaged() {
    return averaged;
  }

  /** Takes part with zeros in a backward that other ranks run. */
  void shadow() {
    arrived = new boolean[parameters.size()];
    arrivals.clear();
    for (Bucket b : buckets) {
      b.start(false);
    }
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      if (options.findUnusedParameters()) {
        boolean[] unused = usedAnywhere();
      }
      for (Bucket b : buckets) {
        b.finish(new boolean[parameters.size()]);
      }
      rebuild();
    }
  }

  private void rebuild() {
    if (!rebuilt) {
      rebuilt = true;
      buckets = build(firstRanksArrivals());
    }
  }

  private void finish() {
    running = false;
    List<String> unused = new ArrayList<>();
    for (int i = 0; i < arrived.length; i++) {
      if (!arrived[i]) {
        unused.add(names.get(i));
      }
    }
    if (!unused.isEmpty() && !options.findUnusedParameters()) {
      throw new IllegalStateException(
          "Ddp: backward gave no gradient to "
              + unused
              + " on rank "
              + group.globalRank(group.rank())
              + "; every parameter must take part in the loss on every rank, unless"
              + " DdpOptions.withFindUnusedParameters(true) is set");
    }
    while (started < buckets.size()) {
      start(buckets.get(started));
    }
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      boolean[] used = options.findUnusedParameters() ? usedAnywhere() : arrived;
      for (Bucket b : buckets) {
        b.finish(used);
      }
      rebuild();
    }
    averaged++;
  }

  private boolean[] usedAnywhere() {
    long[] flags = new long[arrived.length];
    for (int i = 0; i < flags.length; i++) {
      flags[i] = arrived[i] ? 1 : 0;
    }
    Tensor all = Tensor.of(flags, flags.length).to(group.controlDevice());
    Work unused = group.allReduce(all, ReduceOp.MAX);
    long[] any = all.toLongArray();
    boolean[] used = new boolean[any.length];
    for (int i = 0; i < any.length; i++) {
      used[i] = any[i] != 0;
    }
    return used;
  }

  /** The order in which the first rank's gradients came, then what did not come. */
  private List<Integer> firstRanksArrivals() {
    for (int i = parameters.size() - 1; i >= 0; i--) {
      if (!arrived[i]) {
        arrivals.add(i);
      }
    }
    long[] mine = arrivals.stream().mapToLong(Integer::longValue).toArray();
    Tensor order = Tensor.of(mine, mine.length).to(group.controlDevice());
    Work unused = group.broadcast(order, 0);
    List<Integer> list = new ArrayList<>();
    for (long i : order.toLongArray()) {
      list.add((int) i);
    }
    return Collections.unmodifiableList(list);
  }

  /** Gradients that travel together. */
  private final class Bucket {
    final int index;
    final List<Integer> members = new ArrayList<>();
    long elements;
    int missing;
    private @Nullable Supplier<? extends Tensor> result;
    private @Nullable StridedTensor memory;

    Bucket(int index) {
      this.index = index;
    }

    void start(boolean own) {
      List<Tensor> mine = members.stream().map(parameters::get).toList();
      if (own) {
        Gradients.settle(mine);
      }
      Tensor first = mine.get(0);
      StridedTensor flat =
          TensorScope.outside(() -> Tensors.empty(first.dtype(), first.device(), elements));
      memory = flat;
      long at = 0;
      for (Tensor p : mine) {
        StridedTensor part = Parts.of(p);
        StridedTensor piece = Parts.piece(flat, at, part.shape());
        Tensor g = own ? p.grad() : null;
        if (g != null) {
          Parts.copy(Parts.of(g), piece);
        } else if (part.numel() > 0) {
          Regions.zero(piece);
        }
        at += part.numel();
      }
      result = options.hook().start(new GradientBucket(index, flat, mine, group));
    }

    void finish(boolean[] used) {
      Tensor reduced = Objects.requireNonNull(result).get();
      if (reduced.numel() != elements) {
        throw new IllegalStateException(
            "Ddp: the communication hook gave "
                + reduced.describe()
                + " for bucket "
                + index
                + "; expected "
                + elements
                + " elements");
      }
      StridedTensor flat = Regions.reshaped(Regions.contiguous(Parts.of(reduced)), elements);
      long at = 0;
      for (int i : members) {
        Tensor p = parameters.get(i);
        StridedTensor part = Parts.of(p);
        if (used[i]) {
          if (p.grad() == null) {
            p.setGrad(Creation.zerosLike(p));
          }
          StridedTensor g = Parts.of(Objects.requireNonNull(p.grad()));
          Parts.copy(Parts.piece(flat, at, part.shape()), g);
          g.storage().bumpVersion();
        }
        at += part.numel();
      }
      if (reduced != memory) {
        reduced.close();
      }
      drop();
    }

    /** Lets the memory go. */
    void drop() {
      result = null;
      if (memory != null) {
        memory.close();
        memory = null;
      }
    }
  }
}
