package dev.weft.c10d.host;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Which of the machine's addresses this rank listens on and tells the others: the one that {@value
 * #VARIABLE} names (an address, a host name, a network interface, or a network such as 10.0.0.0/8);
 * else the local end of the way to the store, which the others have reached, too; else loopback.
 * Stateless.
 */
final class HostAddress {
  static final String VARIABLE = "WEFT_HOST_ADDRESS";

  private HostAddress() {}

  static InetAddress choose(@Nullable String master) throws IOException {
    String configured = System.getenv(VARIABLE);
    if (configured != null && !configured.isBlank()) {
      return named(configured.trim());
    }
    return master == null ? InetAddress.getLoopbackAddress() : towards(master);
  }

  /** Where ranks reach this one before there is a store. */
  static InetAddress choose(boolean allOnThisMachine) throws IOException {
    String configured = System.getenv(VARIABLE);
    if (configured != null && !configured.isBlank()) {
      return named(configured.trim());
    }
    return allOnThisMachine ? InetAddress.getLoopbackAddress() : outward();
  }

  /** The local address of the way to a host; nothing is sent. */
  static InetAddress towards(String master) throws IOException {
    InetAddress there = InetAddress.getByName(master);
    try (DatagramSocket socket = new DatagramSocket()) {
      socket.connect(new InetSocketAddress(there, 9));
      InetAddress here = socket.getLocalAddress();
      if (!here.isLoopbackAddress() || saysLoopback(master)) {
        return here;
      }
    }
    // A machine's own name often resolves to 127.0.1.1 there, and to its real address elsewhere.
    return outward();
  }

  private static boolean saysLoopback(String name) {
    String n = name.toLowerCase(Locale.ROOT);
    return n.equals("localhost")
        || n.endsWith(".localhost")
        || n.startsWith("127.")
        || n.equals("::1")
        || n.equals("[::1]");
  }

  private static InetAddress outward() throws IOException {
    for (InetAddress a : all()) {
      if (!a.isLoopbackAddress() && !a.isLinkLocalAddress()) {
        return a;
      }
    }
    return InetAddress.getLoopbackAddress();
  }

  /** An address by name, number, interface or network. */
  static InetAddress named(String value) throws IOException {
    int slash = value.indexOf('/');
    if (slash >= 0) {
      byte[] network = InetAddress.getByName(value.substring(0, slash)).getAddress();
      int bits = Integer.parseInt(value.substring(slash + 1));
      for (InetAddress a : all()) {
        if (inNetwork(a.getAddress(), network, bits)) {
          return a;
        }
      }
      throw new UnknownHostException(
          VARIABLE
              + " is '"
              + value
              + "'; none of this machine's addresses "
              + all()
              + " lies in that network");
    }
    NetworkInterface byName = NetworkInterface.getByName(value);
    if (byName != null) {
      for (InetAddress a : Collections.list(byName.getInetAddresses())) {
        if (!a.isLinkLocalAddress()) {
          return a;
        }
      }
    }
    return InetAddress.getByName(value);
  }

  private static boolean inNetwork(byte[] address, byte[] network, int bits) {
    if (address.length != network.length) {
      return false;
    }
    for (int i = 0; i < bits && i < address.length * 8; i++) {
      int mask = 0x80 >> (i % 8);
      if (((address[i / 8] ^ network[i / 8]) & mask) != 0) {
        return false;
      }
    }
    return true;
  }

  private static List<InetAddress> all() throws IOException {
    List<InetAddress> out = new ArrayList<>();
    for (NetworkInterface n : Collections.list(NetworkInterface.getNetworkInterfaces())) {
      if (n.isUp()) {
        out.addAll(Collections.list(n.getInetAddresses()));
      }
    }
    return out;
  }
}
