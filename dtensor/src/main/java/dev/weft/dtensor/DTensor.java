package dev.weft.dtensor;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Pending;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorKind;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A global tensor of which this rank holds a part. Its shape is the global one; operators on it run
 * on the parts and issue the collectives that they need, so all ranks of its mesh call them in the
 * same order, each from the thread that acts for it.
 */
public final class DTensor extends Tensor {
  private final DTensorSpec spec;
  private final StridedTensor local;
  private @Nullable Gathered gathered;

  DTensor(DTensorSpec spec, StridedTensor local) {
    this.spec = spec;
    this.local = local;
  }

  /** This tensor under other placements, as a recorded call has used it. */
  record Gathered(DTensor tensor, int version) {}

  /**
   * What a recorded call has brought into other placements and its backward will want again; null
   * once the data was changed or freed.
   */
  @Nullable DTensor gathered() {
    Gathered g = gathered;
    boolean valid =
        g != null
            && g.version == version()
            && g.tensor.local.storages().stream().noneMatch(Storage::isFreed);
    return g != null && valid ? g.tensor : null;
  }

  /** Keeps it until the next backward that uses it is done, or forgets it. */
  void gathered(@Nullable DTensor tensor) {
    gathered = tensor == null ? null : new Gathered(tensor, version());
  }

  // ---- making one ----

  /**
   * Places a tensor that is whole on the source rank of each mesh dimension: it is scattered or
   * broadcast from group rank 0, mesh dimension by mesh dimension.
   *
   * @param tensor plain; of equal shape on all ranks
   * @param placements one for each mesh dimension, or none for replication on all
   */
  public static DTensor distributeTensor(Tensor tensor, DeviceMesh mesh, Placement... placements) {
    return Distribution.distribute(tensor, mesh, orReplicate(mesh, placements), 0);
  }

  /**
   * The same from another source.
   *
   * @param source a rank of each group, or null where all ranks hold the same tensor and nothing
   *     needs to be sent
   */
  public static DTensor distributeTensor(
      Tensor tensor,
      DeviceMesh mesh,
      List<? extends Placement> placements,
      @Nullable Integer source) {
    return Distribution.distribute(tensor, mesh, placements, source);
  }

  /**
   * Takes each rank's tensor as its part; the global size of a sharded dimension is the local one
   * times the number of ranks.
   *
   * @param local plain; of equal shape on all ranks
   * @param placements one for each mesh dimension, or none for replication on all
   */
  public static DTensor fromLocal(Tensor local, DeviceMesh mesh, Placement... placements) {
    return fromLocal(local, mesh, orReplicate(mesh, placements), FromLocal.DEFAULT);
  }

  /** How {@link #fromLocal} finds the global shape and what it checks. */
  public record FromLocal(
      long @Nullable [] shape,
      long @Nullable [] strides,
      @Nullable List<Placement> gradPlacements,
      boolean check) {
    /** Shape from the local one; nothing checked. */
    public static final FromLocal DEFAULT = new FromLocal(null, null, null, false);

    /** A given global shape; needed where the parts differ in size. */
    public FromLocal withShape(long[] shape, long[] strides) {
      return new FromLocal(shape, strides, gradPlacements, check);
    }

    /** The placements in which the gradient is handed to the local tensor. */
    public FromLocal withGradPlacements(List<Placement> placements) {
      return new FromLocal(shape, strides, placements, check);
    }

    /** Makes replicated parts equal by taking the first rank's, and compares shapes over ranks. */
    public FromLocal withCheck() {
      return new FromLocal(shape, strides, gradPlacements, true);
    }
  }

  /** The same with options. */
  public static DTensor fromLocal(
      Tensor local, DeviceMesh mesh, List<? extends Placement> placements, FromLocal options) {
    return Distribution.fromLocal(local, mesh, placements, options);
  }

  private static List<Placement> orReplicate(DeviceMesh mesh, Placement[] placements) {
    return placements.length == 0
        ? Collections.nCopies(mesh.ndim(), Replicate.INSTANCE)
        : List.of(placements);
  }

  // ---- random numbers and operators without a rule ----

  /**
   * The random stream of distributed tensors on the calling rank, from which operators such as
   * dropout draw where no generator is given. Values depend on the seed, the position in the stream
   * and the place in the whole tensor, never on the mesh; all ranks of a mesh draw alike, so their
   * streams stay together as long as they started together. Its seed is 0 until it is set.
   */
  public static Generator generator() {
    return RankRandom.current();
  }

  /**
   * Starts the stream of {@link #generator} anew. All ranks call it with one seed; the same seed
   * replays a run on any mesh.
   */
  public static void manualSeed(long seed) {
    Generator unused = generator().manualSeed(seed);
  }

  /**
   * Whether operators without a sharding rule may run on whole tensors on every rank; they are
   * refused at first. Each such operator says once how many bytes that moves. Holds for all ranks
   * of this process, and must be the same on all ranks.
   *
   * @return whether they were allowed before
   */
  @CanIgnoreReturnValue
  public static boolean allowReplicationFallback(boolean allow) {
    return ReplicationFallback.allow(allow);
  }

  /**
   * The names of operators that have run on whole tensors since {@link #allowReplicationFallback}
   * was last called, on any rank of this process.
   */
  public static Set<String> replicatedOperators() {
    return ReplicationFallback.used();
  }

  // ---- what it is ----

  /** How it is placed. */
  public DTensorSpec spec() {
    return spec;
  }

  /** The ranks. */
  public DeviceMesh mesh() {
    return spec.mesh();
  }

  /** One placement for each mesh dimension. */
  public List<Placement> placements() {
    return spec.placements();
  }

  @Override
  public long[] shape() {
    return spec.shape();
  }

  @Override
  public DType dtype() {
    return spec.dtype();
  }

  @Override
  public Device device() {
    return local.device();
  }

  @Override
  public TensorKind kind() {
    return DTensorKind.INSTANCE;
  }

  @Override
  public List<Storage> storages() {
    return local.storages();
  }

  /** This rank's part, without history and without waiting. */
  StridedTensor local() {
    return local;
  }

  @Override
  public DTensor alias() {
    return new DTensor(spec, local.alias());
  }

  @Override
  public DTensor ownedCopy() {
    return new DTensor(spec, local.ownedCopy());
  }

  @Override
  protected long numelOnRank() {
    return local.numel();
  }

  @Override
  protected boolean isDense() {
    return local.isContiguous();
  }

  // ---- changing the layout ----

  /**
   * The same tensor under other placements. Returns at once; whoever reads the result waits.
   *
   * @param placements one for each mesh dimension; no Partial but where the tensor is so already
   */
  public DTensor redistribute(Placement... placements) {
    return redistribute(List.of(placements));
  }

  /** The same. */
  public DTensor redistribute(List<? extends Placement> placements) {
    List<Placement> to = DTensorSpec.normalize(mesh(), placements, ndim());
    for (int m = 0; m < to.size(); m++) {
      if (to.get(m).isPartial() && !to.get(m).equals(placements().get(m))) {
        throw new IllegalArgumentException(
            "redistribute: cannot go from "
                + placements().get(m)
                + " to "
                + to.get(m)
                + " on mesh dimension "
                + m
                + "; a Partial comes from operators only");
      }
    }
    return redistributeTo(to);
  }

  /** What {@link #redistribute} would do, step by step. */
  public Plan explain(Placement... placements) {
    return Redistribution.plan(spec, DTensorSpec.normalize(mesh(), List.of(placements), ndim()));
  }

  /** Any redistribution that is defined, Partial targets included. */
  DTensor redistributeTo(List<Placement> to) {
    if (to.equals(placements())) {
      return this;
    }
    return (DTensor) Dispatcher.call(DTensorOps.REDISTRIBUTE, Attrs.of(to, placements()), this);
  }

  /** This rank's part as a plain tensor; gradients flow back under the tensor's placements. */
  public Tensor toLocal() {
    return Dispatcher.call(DTensorOps.TO_LOCAL, Attrs.of(spec, null), this);
  }

  /** The same, with the placements that the part's gradient has. */
  public Tensor toLocal(List<? extends Placement> gradPlacements) {
    return Dispatcher.call(
        DTensorOps.TO_LOCAL,
        Attrs.of(spec, DTensorSpec.normalize(mesh(), gradPlacements, ndim())),
        this);
  }

  /** The whole tensor on every rank, as a plain tensor. */
  public Tensor fullTensor() {
    return redistributeTo(Collections.nCopies(mesh().ndim(), Replicate.INSTANCE)).toLocal();
  }

  /** The same, with the placements that its gradient has on each rank. */
  public Tensor fullTensor(List<? extends Placement> gradPlacements) {
    return redistributeTo(Collections.nCopies(mesh().ndim(), Replicate.INSTANCE))
        .toLocal(gradPlacements);
  }

  @Override
  public StridedTensor plain() {
    return Autograd.noGrad(() -> (StridedTensor) fullTensor());
  }

  @Override
  public String describe() {
    return "DTensor " + dtype() + Arrays.toString(shape()) + " " + placements() + " on " + mesh();
  }

  /**
   * What it is and this rank's part. Never communicates nor waits: values that are still on their
   * way are not shown.
   */
  @Override
  public String toString() {
    return describe()
        + (mesh().containsThisRank()
            ? ", from " + Arrays.toString(spec.globalOffset()) + " on this rank:\n" + values()
            : ", nothing on this rank");
  }

  private String values() {
    Storage storage = local.storage();
    if (storage.isFreed()) {
      return local.describe() + ", freed";
    }
    Pending pending = storage.pending();
    return pending == null || pending.isCompleted()
        ? local.detach().toString()
        : local.describe() + ", arriving";
  }

  /** How it lies over its ranks, as a picture in text; see {@link ShardingPicture}. */
  public String visualizeSharding() {
    return ShardingPicture.text(spec);
  }
}
