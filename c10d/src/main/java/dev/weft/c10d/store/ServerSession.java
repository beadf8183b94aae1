package dev.weft.c10d.store;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.weft.c10d.store.RequestDecoder.Request;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.DecoderException;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One client of the server: answers its requests from the shared table. All sessions of a server
 * run on its one event loop, so the table needs no lock. Whatever the client does wrong ends its
 * own connection. A client that does not read its answers is not read from either, until it has.
 */
final class ServerSession extends SimpleChannelInboundHandler<Request> {
  private static final Logger log = LoggerFactory.getLogger(ServerSession.class);
  private static final int HANDSHAKE_SECONDS = 60;

  private final Table table;
  private final Waiters waiters;
  private final Set<String> awaited = new HashSet<>();
  private boolean validated;
  private @Nullable Future<?> handshakeTimer;
  private @Nullable ChannelHandlerContext context;

  ServerSession(Table table, Waiters waiters) {
    this.table = table;
    this.waiters = waiters;
  }

  /** The keys that this client still waits for. */
  Set<String> awaited() {
    return awaited;
  }

  /** Ends this client's wait: all that it waited for is there. */
  void release() {
    var ctx = context;
    if (ctx != null) {
      var unused = ctx.writeAndFlush(byteOf(Query.READY), ctx.voidPromise());
    }
  }

  @Override
  public void channelActive(ChannelHandlerContext ctx) {
    context = ctx;
    handshakeTimer =
        ctx.executor()
            .schedule(
                () -> {
                  if (!validated && ctx.channel().isActive()) {
                    log.warn(
                        "store client {} sent no handshake in {} s, closing",
                        ctx.channel().remoteAddress(),
                        HANDSHAKE_SECONDS);
                    var unused = ctx.close();
                  }
                },
                HANDSHAKE_SECONDS,
                TimeUnit.SECONDS);
    ctx.fireChannelActive();
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    context = null;
    cancelTimer();
    waiters.forget(this);
    ctx.fireChannelInactive();
  }

  private void cancelTimer() {
    if (handshakeTimer != null) {
      handshakeTimer.cancel(false);
      handshakeTimer = null;
    }
  }

  @Override
  public void channelWritabilityChanged(ChannelHandlerContext ctx) {
    ctx.channel().config().setAutoRead(ctx.channel().isWritable());
    ctx.fireChannelWritabilityChanged();
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    Throwable reason =
        cause instanceof DecoderException && cause.getCause() != null ? cause.getCause() : cause;
    if (reason instanceof ProtocolException) {
      log.warn("closing store client {}: {}", ctx.channel().remoteAddress(), reason.getMessage());
    } else if (reason instanceof IOException) {
      log.debug("store client {} is gone: {}", ctx.channel().remoteAddress(), reason.getMessage());
    } else {
      log.error(
          "closing store client {} after an unexpected failure",
          ctx.channel().remoteAddress(),
          reason);
    }
    var unused = ctx.close();
  }

  @Override
  protected void channelRead0(ChannelHandlerContext ctx, Request request) {
    if (!ctx.channel().isActive()) {
      return; // what was decoded together with the request that ended the connection
    }
    if (!validated) {
      if (request.query() != Query.VALIDATE || (int) request.number() != Query.MAGIC) {
        throw new ProtocolException("the first bytes are not those of a store client");
      }
      validated = true;
      cancelTimer();
      return;
    }
    ByteBuf reply = answer(request);
    if (reply != null) {
      var unused = ctx.writeAndFlush(reply, ctx.voidPromise());
    }
  }

  private @Nullable ByteBuf answer(Request request) {
    return switch (request.query()) {
      case VALIDATE -> throw new ProtocolException("a second handshake");
      case SET -> {
        table.set(request.key(), request.value());
        waiters.wake(request.key());
        yield null;
      }
      case APPEND -> {
        append(request.key(), request.value());
        yield null;
      }
      case MULTI_SET -> throw new IllegalStateException("the decoder turns MULTI_SET into SETs");
      case QUEUE_PUSH -> {
        table.push(request.key(), request.value());
        waiters.wakeOne(request.key());
        yield null;
      }
      case GET -> valueOf(table.get(request.key()));
      case MULTI_GET -> values(request.keys());
      case COMPARE_SET -> {
        var result =
            table.compareSet(request.key(), request.values().get(0), request.values().get(1));
        waiters.wake(request.key());
        yield valueOf(result);
      }
      case ADD -> {
        long sum = add(request.key(), request.number());
        waiters.wake(request.key());
        yield numberOf(sum);
      }
      case CHECK -> byteOf(hasAll(request.keys()) ? Query.READY : Query.NOT_READY);
      case WAIT -> hasAll(request.keys()) ? byteOf(Query.READY) : park(request.keys());
      case CANCEL_WAIT -> {
        waiters.forget(this);
        yield byteOf(Query.CANCELED);
      }
      case GET_NUM_KEYS -> numberOf(table.size());
      case DELETE_KEY -> numberOf(table.delete(request.key()) ? 1 : 0);
      case LIST_KEYS -> listKeys();
      case QUEUE_POP -> pop(request.key());
      case QUEUE_LEN -> numberOf(table.queueLength(request.key()));
      case BARRIER -> {
        if (add(request.key(), 1) < request.number()) {
          yield park(List.of(request.key()));
        }
        waiters.wake(request.key());
        yield byteOf(Query.READY);
      }
      case PING -> Unpooled.buffer(Integer.BYTES).writeIntLE((int) request.number());
    };
  }

  private boolean hasAll(List<String> keys) {
    return keys.stream().allMatch(table::has);
  }

  /** Starts a wait; a barrier's key may be there already, and is awaited all the same. */
  private @Nullable ByteBuf park(List<String> keys) {
    waiters.forget(this);
    if (keys.size() == 1) {
      waiters.add(this, keys.get(0));
    } else {
      keys.stream().filter(key -> !table.has(key)).forEach(key -> waiters.add(this, key));
    }
    return null;
  }

  private long add(String key, long delta) {
    try {
      return table.add(key, delta);
    } catch (NumberFormatException e) {
      throw new ProtocolException(
          "adding to key '%s', which holds no number".formatted(Texts.brief(key)));
    }
  }

  private void append(String key, byte[] more) {
    try {
      table.append(key, more);
    } catch (IllegalStateException e) {
      throw new ProtocolException(
          "appending to key '%s': %s".formatted(Texts.brief(key), e.getMessage()));
    }
    waiters.wake(key);
  }

  private ByteBuf pop(String key) {
    int length = table.queueLength(key);
    byte[] first = table.pop(key);
    return first == null
        ? numberOf(0)
        : Unpooled.wrappedBuffer(
            numberOf(length), numberOf(first.length), Unpooled.wrappedBuffer(first));
  }

  private ByteBuf listKeys() {
    ByteBuf reply = Unpooled.buffer().writeLongLE(table.size());
    for (String key : table.keys()) {
      reply.writeLongLE(key.length()).writeCharSequence(key, ISO_8859_1);
    }
    return reply;
  }

  private ByteBuf values(List<String> keys) {
    ByteBuf[] parts = new ByteBuf[keys.size()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = valueOf(table.get(keys.get(i)));
    }
    return Unpooled.wrappedBuffer(Math.max(1, parts.length), parts);
  }

  private static ByteBuf valueOf(Table.@Nullable Value value) {
    return value == null
        ? numberOf(0)
        : Unpooled.wrappedBuffer(
            numberOf(value.length()), Unpooled.wrappedBuffer(value.array(), 0, value.length()));
  }

  private static ByteBuf numberOf(long number) {
    return Unpooled.buffer(Long.BYTES).writeLongLE(number);
  }

  private static ByteBuf byteOf(byte value) {
    return Unpooled.buffer(1).writeByte(value);
  }
}
