package dev.weft.cli.doctor;

import static dev.weft.cli.doctor.Finding.broken;
import static dev.weft.cli.doctor.Finding.ok;
import static dev.weft.cli.doctor.Finding.warn;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;

/**
 * Meets the doctors of other hosts, and measures the ways between them: each pair in turn, over
 * TCP, both directions. The first host serves the store.
 */
final class WorldCheck {
  private static final int ROUND_TRIPS = 20;
  private static final int MIB = 16;
  private static final int REPEATS = 4;
  private static final int TRANSFERS = 4;
  private static final double SLOW_MB_S = 100;
  private static final double CLOCK_SECONDS = 0.5;

  private final List<String> hosts;
  private final int rank;
  private final int port;
  private final Duration timeout;

  WorldCheck(List<String> hosts, int rank, int port, Duration timeout) {
    this.hosts = hosts;
    this.rank = rank;
    this.port = port;
    this.timeout = timeout;
  }

  /**
   * Which of the hosts this one is.
   *
   * @throws IllegalArgumentException if none is, or more than one
   */
  static int rankOf(List<String> hosts) throws IOException {
    List<Integer> own = new ArrayList<>();
    for (int i = 0; i < hosts.size(); i++) {
      InetAddress address = InetAddress.getByName(hosts.get(i));
      if (NetworkInterface.getByInetAddress(address) != null || address.isLoopbackAddress()) {
        own.add(i);
      }
    }
    if (own.size() != 1) {
      throw new IllegalArgumentException(
          "--world "
              + String.join(",", hosts)
              + " has "
              + own.size()
              + " addresses of this host; expected one, or --rank to say which is meant");
    }
    return own.get(0);
  }

  void run(Consumer<Finding> out) {
    String where = hosts.get(0) + ":" + port;
    InitOptions options =
        InitOptions.DEFAULT
            .withInitMethod("tcp://" + where)
            .withRank(rank, hosts.size())
            .withTimeout(timeout);
    World world;
    try {
      world = Distributed.init(options);
    } catch (DistributedException e) {
      out.accept(
          broken(
              "rendezvous",
              String.valueOf(e.getMessage()),
              rank == 0
                  ? "weft doctor --world " + String.join(",", hosts) + " on the missing hosts, too"
                  : "ufw allow " + port + "/tcp on " + hosts.get(0)));
      return;
    }
    try (world) {
      Work unused = Distributed.allReduce(Tensor.of(new float[] {1}, 1), ReduceOp.SUM);
      out.accept(ok("rendezvous", "all " + hosts.size() + " hosts have met at " + where));
      for (int a = 0; a < hosts.size(); a++) {
        for (int b = a + 1; b < hosts.size(); b++) {
          if (rank == a || rank == b) {
            pair(rank == a ? b : a, rank == a, out);
          }
          unused = Distributed.barrier();
        }
      }
    } catch (DistributedException e) {
      out.accept(
          broken(
              "connections",
              "the hosts met, and then: " + e.getMessage(),
              "export WEFT_HOST_ADDRESS=<this host's address in the network of the others>"));
    }
  }

  private void pair(int other, boolean first, Consumer<Finding> out) {
    ProcessGroup g = Distributed.world();
    try (TensorScope scope = TensorScope.open()) {
      double best = Double.MAX_VALUE;
      double offset = 0;
      Tensor clock = Tensors.empty(DType.INT64, 1);
      for (int i = 0; i < ROUND_TRIPS; i++) {
        long begin = System.nanoTime();
        Work unused;
        if (first) {
          unused = g.send(Tensor.of(new long[] {System.currentTimeMillis()}, 1), other, i);
          unused = g.recv(clock, other, i);
          double seconds = (System.nanoTime() - begin) * 1e-9;
          if (seconds < best) {
            best = seconds;
            offset = (clock.toLongArray()[0] - System.currentTimeMillis()) * 1e-3 + seconds / 2;
          }
        } else {
          unused = g.recv(clock, other, i);
          unused = g.send(Tensor.of(new long[] {System.currentTimeMillis()}, 1), other, i);
        }
      }
      double there = 0;
      double back = 0;
      // The first ones meet code that is not compiled yet.
      for (int i = 0; i < TRANSFERS; i++) {
        there = Math.max(there, transfer(g, other, first));
        back = Math.max(back, transfer(g, other, !first));
      }
      String way =
          "-> " + hosts.get(other) + (hosts.get(other).equals(hosts.get(rank)) ? " #" + other : "");
      String text =
          String.format(
              Locale.ROOT,
              "%s%.0f MB/s out, %.0f MB/s in",
              first ? String.format(Locale.ROOT, "round trip %.2f ms, ", best * 1e3) : "",
              first ? there : back,
              first ? back : there);
      out.accept(
          Math.min(there, back) >= SLOW_MB_S
              ? ok(way, text)
              : warn(
                  way,
                  text + "; slow for gradients",
                  "export WEFT_HOST_ADDRESS=<this host's address in its fastest network>"));
      if (first) {
        String told = String.format(Locale.ROOT, "%.3f s from this one", offset);
        out.accept(
            Math.abs(offset) < CLOCK_SECONDS
                ? ok("clock " + hosts.get(other), told)
                : warn("clock " + hosts.get(other), told, "timedatectl set-ntp true"));
      }
    }
  }

  /** 10^6 bytes a second, counted until the receiver has said that it has all. */
  private static double transfer(ProcessGroup g, int other, boolean sends) {
    Tensor data = Tensors.empty(DType.UINT8, MIB << 20);
    Tensor done = Tensors.empty(DType.UINT8, 1);
    long begin = System.nanoTime();
    Work unused;
    for (int i = 0; i < REPEATS; i++) {
      unused = sends ? g.send(data, other, 100 + i) : g.recv(data, other, 100 + i);
    }
    unused = sends ? g.recv(done, other, 200) : g.send(done, other, 200);
    return (double) REPEATS * (MIB << 20) / 1e6 / ((System.nanoTime() - begin) * 1e-9);
  }
}
