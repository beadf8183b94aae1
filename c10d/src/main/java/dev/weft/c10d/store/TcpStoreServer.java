package dev.weft.c10d.store;

import dev.weft.c10d.StoreException;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The server end of {@link TcpStore}: one event loop with one daemon thread for any number of
 * clients. Thread-safe.
 */
final class TcpStoreServer {
  private static final Logger log = LoggerFactory.getLogger(TcpStoreServer.class);
  private static final int BACKLOG = 4096;

  /** Servers that several stores of this process share, by port; guarded by itself. */
  private static final Map<Integer, TcpStoreServer> SHARED = new HashMap<>();

  private final EventLoopGroup loop;
  private final ChannelGroup channels;
  private final InetSocketAddress address;
  private int users = 1;

  /**
   * Starts a server, or with {@code shared} joins the one that this process has on that port.
   *
   * @throws StoreException if the port is in use or the address is not of this machine
   */
  static TcpStoreServer start(
      InetSocketAddress bindTo, boolean shared, Optional<SharedSecret> secret) {
    synchronized (SHARED) {
      var present = shared && bindTo.getPort() != 0 ? SHARED.get(bindTo.getPort()) : null;
      if (present != null) {
        present.users++;
        return present;
      }
      var server = new TcpStoreServer(bindTo, secret);
      if (shared) {
        SHARED.put(server.port(), server);
      }
      return server;
    }
  }

  private TcpStoreServer(InetSocketAddress bindTo, Optional<SharedSecret> secret) {
    loop =
        new MultiThreadIoEventLoopGroup(
            1, new DefaultThreadFactory("weft-store-server", true), NioIoHandler.newFactory());
    channels = new DefaultChannelGroup(loop.next(), true);
    var table = new Table(Table.Journal.NONE);
    var waiters = new Waiters();
    var bootstrap =
        new ServerBootstrap()
            .group(loop)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, BACKLOG)
            .option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childOption(ChannelOption.SO_KEEPALIVE, true)
            .childOption(
                ChannelOption.WRITE_BUFFER_WATER_MARK, new WriteBufferWaterMark(1 << 18, 1 << 20))
            .childHandler(
                new ChannelInitializer<SocketChannel>() {
                  @Override
                  protected void initChannel(SocketChannel channel) {
                    channels.add(channel);
                    secret.ifPresent(known -> channel.pipeline().addLast(new SecretGate(known)));
                    var session = new ServerSession(table, waiters);
                    channel.pipeline().addLast(new RequestDecoder(session::isClear), session);
                  }
                });
    var bound = bootstrap.bind(bindTo).awaitUninterruptibly();
    if (!bound.isSuccess()) {
      stop();
      throw new StoreException(
          "store server cannot listen on %s:%d: %s"
              .formatted(bindTo.getHostString(), bindTo.getPort(), bound.cause().getMessage()),
          bound.cause());
    }
    Channel listener = bound.channel();
    channels.add(listener);
    address = (InetSocketAddress) listener.localAddress();
    log.info("store server listens on {}", address);
  }

  /** The address it is bound to. */
  InetSocketAddress address() {
    return address;
  }

  int port() {
    return address.getPort();
  }

  /** Lets go of the server, which stops with its last user. */
  void close() {
    synchronized (SHARED) {
      users--;
      if (users > 0) {
        return;
      }
      SHARED.remove(port(), this);
    }
    stop();
  }

  private void stop() {
    channels.close().awaitUninterruptibly(2, TimeUnit.SECONDS);
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly(2, TimeUnit.SECONDS);
  }
}
