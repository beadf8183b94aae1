package dev.weft.c10d.store;

import com.google.common.base.Splitter;
import com.google.common.net.InetAddresses;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Which local address a store server listens on: the one that {@value #VARIABLE} names (an address,
 * a host name, a network interface, or a network such as 10.0.0.0/8 that one of the machine's
 * addresses lies in); else loopback if the master address is loopback; else all interfaces.
 *
 * <p>A name counts as loopback only if it says so: a machine's own name often resolves to 127.0.1.1
 * on that machine, and to its real address on the others.
 */
final class BindAddress {
  static final String VARIABLE = "WEFT_STORE_BIND";

  private BindAddress() {}

  static InetSocketAddress choose(@Nullable String configured, String masterAddress, int port) {
    if (configured != null && !configured.isBlank()) {
      return new InetSocketAddress(resolve(configured.trim()), port);
    }
    return loopback(masterAddress)
        .map(address -> new InetSocketAddress(address, port))
        .orElseGet(() -> new InetSocketAddress(port));
  }

  private static Optional<InetAddress> loopback(String host) {
    String name = host.toLowerCase(Locale.ROOT);
    try {
      if (name.equals("localhost")
          || name.endsWith(".localhost")
          || InetAddresses.isUriInetAddress(name)
          || InetAddresses.isInetAddress(name)) {
        InetAddress address = InetAddress.getByName(host);
        return address.isLoopbackAddress() ? Optional.of(address) : Optional.empty();
      }
    } catch (UnknownHostException e) {
      return Optional.empty(); // the connection that follows reports it, with the name
    }
    return Optional.empty();
  }

  private static InetAddress resolve(String value) {
    try {
      if (value.contains("/")) {
        return inNetwork(value);
      }
      var byName = NetworkInterface.getByName(value);
      if (byName != null && byName.getInetAddresses().hasMoreElements()) {
        return byName.getInetAddresses().nextElement();
      }
      return InetAddress.getByName(value);
    } catch (UnknownHostException | SocketException | IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "%s is '%s'; expected an address, a host name, a network interface or a network such as 10.0.0.0/8 (%s)"
              .formatted(VARIABLE, value, e.getMessage()),
          e);
    }
  }

  private static InetAddress inNetwork(String value) throws SocketException, UnknownHostException {
    var parts = Splitter.on('/').splitToList(value);
    byte[] network = InetAddresses.forString(parts.get(0)).getAddress();
    int bits = Integer.parseInt(parts.get(1));
    if (parts.size() != 2 || bits < 0 || bits > network.length * 8) {
      throw new IllegalArgumentException("not a network");
    }
    return NetworkInterface.networkInterfaces()
        .flatMap(NetworkInterface::inetAddresses)
        .filter(address -> sameBits(address.getAddress(), network, bits))
        .findFirst()
        .orElseThrow(() -> new UnknownHostException("no address of this machine lies in it"));
  }

  private static boolean sameBits(byte[] a, byte[] b, int bits) {
    if (a.length != b.length) {
      return false;
    }
    for (int bit = 0; bit < bits; bit++) {
      int mask = 0x80 >> (bit % 8);
      if ((a[bit / 8] & mask) != (b[bit / 8] & mask)) {
        return false;
      }
    }
    return true;
  }
}
