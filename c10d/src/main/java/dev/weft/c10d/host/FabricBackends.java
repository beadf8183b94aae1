package dev.weft.c10d.host;

import dev.weft.c10d.Backend;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.RendezvousException;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.util.function.Function;

/** Makes backends whose data is moved by a {@link Fabric}. Stateless. */
public final class FabricBackends {
  private FabricBackends() {}

  /**
   * Makes the backend of a group.
   *
   * @param name the backend's
   * @param fabric makes the fabric of a rank's world, once
   */
  public static Backend create(
      String name, GroupContext group, Function<RankContext, Fabric> fabric) {
    RankContext context = group.rankContext();
    FabricEndpoint endpoint =
        context.resource(
            FabricEndpoint.class,
            () -> {
              FabricEndpoint made = new FabricEndpoint(context, fabric.apply(context));
              context.addPeerListener(made.mailbox());
              return made;
            });
    return new HostBackend(
        name,
        group,
        endpoint,
        new FabricAlgorithms(() -> endpoint.fabric().group(group.name(), group.ranks())));
  }

  /**
   * An address by which the other ranks reach this one: what {@code WEFT_HOST_ADDRESS} names, else
   * loopback or the machine's own.
   *
   * @param sameMachine whether all ranks are on this machine
   */
  public static String address(boolean sameMachine) {
    try {
      return HostAddress.choose(sameMachine).getHostAddress();
    } catch (IOException e) {
      throw new RendezvousException("this machine's address cannot be found: " + e.getMessage(), e);
    }
  }

  /**
   * Reduces two stretches of memory element by element, for a library that cannot.
   *
   * @param input the elements of one side
   * @param inOut those of the other, and the result
   */
  public static void combine(DType dtype, ReduceOp op, long input, long inOut, long count) {
    Lanes.reduce(dtype, op, new long[] {inOut, input}, count, inOut);
  }
}
