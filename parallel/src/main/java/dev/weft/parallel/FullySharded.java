package dev.weft.parallel;

import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.parallel.ShardedParameter.Memory;
import dev.weft.parallel.ShardedParameter.Place;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.cuda.Cuda;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * Fully sharded data parallelism: each rank keeps a part of every parameter, of its gradient and of
 * the optimiser's state. A module's parameters are gathered before its forward and backward and let
 * go after; gradients are averaged and scattered when backward has them. Used by the thread that
 * acts for a rank; all ranks run the same forwards and backwards.
 *
 * <p>Call {@link #fullyShard} on the blocks of a model and then on the model itself, which takes
 * what the blocks left. Each call makes one gather of the parameters of its module. From then on
 * {@code module.parameters()} are distributed tensors cut along dimension 0, of which an optimiser,
 * {@code Clipping} and checkpoints know what to do; inside a module's own forward and backward they
 * are whole. Parameters that are tied must be sharded by one call.
 */
public final class FullySharded implements GradientSync {
  // Which modules are sharded, so that an outer call leaves out what an inner one took.
  private static final Map<Module, WeakReference<FullySharded>> ALL =
      Collections.synchronizedMap(new WeakHashMap<>());
  // Parameters that were cut and are gone; a tie to one would be broken silently.
  private static final Map<Tensor, String> CUT = Collections.synchronizedMap(new WeakHashMap<>());

  private final Module module;
  private final DeviceMesh mesh;
  private final FullyShardedPolicy policy;
  private final List<ParameterGroup> groups = new ArrayList<>();
  private final Set<Tensor> awaited = Collections.newSetFromMap(new IdentityHashMap<>());
  private final List<FullySharded> inner = new ArrayList<>();
  private ShardingSchedule schedule = new ShardingSchedule(this);
  private boolean sync = true;
  private boolean allReduce = true;
  private boolean inBackward;

  private FullySharded(Module module, DeviceMesh mesh, FullyShardedPolicy policy) {
    this.module = module;
    this.mesh = mesh;
    this.policy = policy;
  }

  /** The same with {@link FullyShardedPolicy#DEFAULT}. */
  public static FullySharded fullyShard(Module module, DeviceMesh mesh) {
    return fullyShard(module, mesh, FullyShardedPolicy.DEFAULT);
  }

  /**
   * Shards the parameters of a module that no inner module's call has sharded before. All ranks get
   * the first rank's values. To be called before an optimiser is made, after tensor parallelism was
   * applied; the tensors that were parameters before are freed. Of parameters made under {@link
   * dev.weft.nn.DeferredInit} each rank makes and fills its part only.
   *
   * @param mesh one dimension, over which parameters are cut; or two, of which the first holds
   *     replicas and the second cuts. Tensor-parallel parameters must lie on other dimensions of
   *     the same root mesh
   * @throws IllegalArgumentException if a parameter has no dimension, is tied to one that was
   *     sharded by another call, or cannot be cut together with its tensor parallelism
   */
  public static FullySharded fullyShard(Module module, DeviceMesh mesh, FullyShardedPolicy policy) {
    if (mesh.ndim() != 1 && mesh.ndim() != 2) {
      throw new IllegalArgumentException(
          "fullyShard: mesh "
              + mesh
              + " has "
              + mesh.ndim()
              + " dimensions; expected 1 (shard) or 2 (replicate, shard)");
    }
    if (ALL.containsKey(module)) {
      throw new IllegalArgumentException(
          "fullyShard: this " + module.getClass().getSimpleName() + " is sharded already");
    }
    FullySharded sharded = new FullySharded(module, mesh, policy);
    for (Module m : module.namedModules().values()) {
      WeakReference<FullySharded> below = ALL.get(m);
      FullySharded other = below == null ? null : below.get();
      if (other != null) {
        sharded.inner.add(other);
      }
    }
    sharded.shardParameters();
    for (FullySharded s : sharded.inner) {
      s.schedule = sharded.schedule;
    }
    ALL.put(module, new WeakReference<>(sharded));
    sharded.install();
    return sharded;
  }

  private record Kind(DType dtype, Device device) {}

  private void shardParameters() {
    Set<Tensor> taken = Collections.newSetFromMap(new IdentityHashMap<>());
    for (FullySharded s : inner) {
      for (ParameterGroup g : s.groups) {
        g.parameters().forEach(p -> taken.add(p.sharded()));
      }
    }
    Map<Tensor, List<Place>> places = new LinkedHashMap<>();
    Map<Tensor, String> paths = new LinkedHashMap<>();
    module
        .namedParameters()
        .forEach(
            (path, p) -> {
              if (!taken.contains(p)) {
                String before = CUT.get(p);
                if (before != null) {
                  throw new IllegalArgumentException(
                      "fullyShard: parameter '"
                          + path
                          + "' is tied to '"
                          + before
                          + "', which another call has sharded; shard both by one call");
                }
                ShardedParameter.check(path, p);
                int dot = path.lastIndexOf('.');
                Place place =
                    new Place(
                        dot < 0 ? module : module.module(path.substring(0, dot)),
                        path.substring(dot + 1));
                places.computeIfAbsent(p, k -> new ArrayList<>()).add(place);
                paths.putIfAbsent(p, path);
              }
            });
    Map<Kind, List<ShardedParameter>> kinds = new LinkedHashMap<>();
    paths.forEach(
        (p, path) -> {
          DType whole = policy.paramDtype() == null ? p.dtype() : policy.paramDtype();
          Device compute = p.device().isMeta() ? device(mesh) : p.device();
          ShardedParameter s =
              new ShardedParameter(
                  path,
                  Objects.requireNonNull(places.get(p)),
                  p,
                  mesh,
                  new Memory(whole, compute, policy.cpuOffload() ? Device.CPU : compute));
          kinds.computeIfAbsent(new Kind(whole, compute), k -> new ArrayList<>()).add(s);
          CUT.put(p, path);
          p.close();
        });
    kinds.forEach(
        (kind, list) -> {
          DType reduce = policy.reduceDtype() == null ? kind.dtype : policy.reduceDtype();
          groups.add(new ParameterGroup(list, mesh, kind.dtype, reduce, kind.device));
        });
  }

  /** Where the modules of a mesh compute. */
  private static Device device(DeviceMesh mesh) {
    return mesh.deviceType().equals("cuda") ? Device.cuda(Cuda.currentDevice()) : Device.CPU;
  }

  private void install() {
    for (ParameterGroup g : groups) {
      for (ShardedParameter p : g.trained()) {
        Autograd.postAccumulateHook(p.whole(), this::gradientArrived);
      }
    }
    Module.Handle unused = module.forwardPreHook((m, inputs) -> beforeForward(inputs));
    unused = module.forwardHook((m, inputs, output) -> afterForward(output));
  }

  // ---- forward ----

  private Tensor[] beforeForward(Tensor[] inputs) {
    unshard();
    useWhole(true);
    if (!Autograd.isInBackward()) {
      schedule.forward(this);
      schedule.next(this, policy.prefetch()).forEach(FullySharded::prefetch);
    }
    DType dtype = policy.paramDtype();
    if (dtype == null || !policy.castForwardInputs()) {
      return inputs;
    }
    Tensor[] cast = Arrays.copyOf(inputs, inputs.length);
    for (int i = 0; i < cast.length; i++) {
      if (cast[i].dtype().isFloatingPoint()) {
        cast[i] = cast[i].to(dtype);
      }
    }
    return cast;
  }

  private Tensor afterForward(Tensor output) {
    useWhole(inBackward);
    Tensor out = output;
    if (policy.outputDtype() != null && out.dtype().isFloatingPoint()) {
      out = out.to(policy.outputDtype());
    }
    if (Autograd.isInBackward()) {
      // A second run, whose output leads nowhere: the first one's does.
      if (!inBackward && policy.reshardAfterForward()) {
        reshard();
      }
      return out;
    }
    boolean backward = Autograd.isEnabled() && out.requiresGrad();
    if (backward) {
      Autograd.hook(
          out,
          g -> {
            beforeBackward();
            // Of a backward in two passes, each gathers anew.
            Autograd.beforeWeights(this::beforeBackward);
            return g;
          });
    }
    if (policy.reshardAfterForward() || !backward) {
      reshard();
    }
    return out;
  }

  // ---- backward ----

  private void beforeBackward() {
    if (!inBackward) {
      inBackward = true;
      for (ParameterGroup g : groups) {
        g.trained().forEach(p -> awaited.add(p.whole()));
      }
      schedule.backward(this);
    }
    unshard();
    // For what is computed again in backward.
    useWhole(true);
    schedule.previous(this, policy.prefetch()).forEach(FullySharded::prefetch);
  }

  private void gradientArrived(Tensor whole) {
    awaited.remove(whole);
    if (inBackward && awaited.isEmpty()) {
      afterBackward();
    }
  }

  /** Lets the parameters go and starts the reduction; at the latest when backward ends. */
  void afterBackward() {
    if (!inBackward) {
      return;
    }
    inBackward = false;
    awaited.clear();
    useWhole(false);
    reshard();
    if (sync && !Autograd.isInInputPass()) {
      schedule.reducing(this);
      groups.forEach(ParameterGroup::startReduction);
    }
  }

  void finishReduction() {
    groups.forEach(g -> g.finishReduction(allReduce));
  }

  // ---- parameters ----

  void prefetch() {
    groups.forEach(ParameterGroup::prefetch);
  }

  private void unshard() {
    groups.forEach(ParameterGroup::unshard);
  }

  void reshard() {
    groups.forEach(ParameterGroup::reshard);
  }

  void dropPrefetched() {
    groups.forEach(ParameterGroup::dropPrefetched);
  }

  private void useWhole(boolean use) {
    for (ParameterGroup g : groups) {
      g.parameters().forEach(p -> p.useWhole(use));
    }
  }

  /** The module. */
  public Module module() {
    return module;
  }

  /** The module's output; to call the module itself does the same. */
  public Tensor call(Tensor... inputs) {
    return module.call(inputs);
  }

  /**
   * Whether the next backwards reduce the gradients, of this module and of those inside. The whole
   * gradients of those that do not are accumulated on each rank, and reduced with the next backward
   * that does.
   */
  @Override
  public void requiresGradientSync(boolean sync) {
    this.sync = sync;
    inner.forEach(s -> s.sync = sync);
  }

  @Override
  public boolean requiresGradientSync() {
    return sync;
  }

  /**
   * Whether the next backwards average over replicas too, of this module and of those inside. What
   * those that do not have scattered is accumulated, and averaged with the next backward that does.
   * Of use with two mesh dimensions only.
   */
  public void requiresAllReduce(boolean allReduce) {
    this.allReduce = allReduce;
    inner.forEach(s -> s.allReduce = allReduce);
  }

  /** The sharded parameters of this call by path. */
  public Map<String, DTensor> parameters() {
    Map<String, DTensor> out = new LinkedHashMap<>();
    for (ParameterGroup g : groups) {
      g.parameters().forEach(p -> out.put(p.path(), p.sharded()));
    }
    return out;
  }

  /** Whether the parameters are whole at this moment, for tests. */
  boolean isWhole() {
    return groups.stream().allMatch(ParameterGroup::isWhole);
  }

  /** Whether the parameters have been gathered ahead and not been used yet, for tests. */
  boolean isGatheredAhead() {
    return groups.stream().anyMatch(ParameterGroup::isGatheredAhead);
  }
}
