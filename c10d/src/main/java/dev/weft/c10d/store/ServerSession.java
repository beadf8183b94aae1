package dev.weft.c10d.store;

import dev.weft.c10d.store.RequestDecoder.Request;
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
  private @Nullable Outbox outbox;

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
    var out = outbox;
    if (out != null) {
      out.oneByte(Query.READY).send();
    }
  }

  /** Whether the client has taken its answers so far. */
  boolean isClear() {
    return outbox == null || outbox.isClear();
  }

  @Override
  public void channelActive(ChannelHandlerContext ctx) {
    outbox = new Outbox(ctx, () -> ctx.pipeline().get(RequestDecoder.class).resume());
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
    outbox = null;
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
    if (outbox != null) {
      outbox.send();
    }
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
    var out = outbox;
    if (out == null || !ctx.channel().isActive()) {
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
    answer(request, out);
    out.send();
  }

  private void answer(Request request, Outbox out) {
    switch (request.query()) {
      case VALIDATE -> throw new ProtocolException("a second handshake");
      case SET -> {
        table.set(request.key(), request.value());
        waiters.wake(request.key());
      }
      case APPEND -> append(request.key(), request.value());
      case MULTI_SET -> throw new IllegalStateException("the decoder turns MULTI_SET into SETs");
      case QUEUE_PUSH -> {
        table.push(request.key(), request.value());
        waiters.wakeOne(request.key());
      }
      case GET, MULTI_GET -> request.keys().forEach(key -> value(table.get(key), out));
      case COMPARE_SET -> {
        var result =
            table.compareSet(request.key(), request.values().get(0), request.values().get(1));
        waiters.wake(request.key());
        value(result, out);
      }
      case ADD -> {
        long sum = add(request.key(), request.number());
        waiters.wake(request.key());
        out.number(sum);
      }
      case CHECK -> out.oneByte(hasAll(request.keys()) ? Query.READY : Query.NOT_READY);
      case WAIT -> {
        if (hasAll(request.keys())) {
          out.oneByte(Query.READY);
        } else {
          park(request.keys());
        }
      }
      case CANCEL_WAIT -> {
        waiters.forget(this);
        out.oneByte(Query.CANCELED);
      }
      case GET_NUM_KEYS -> out.number(table.size());
      case DELETE_KEY -> out.number(table.delete(request.key()) ? 1 : 0);
      case LIST_KEYS -> {
        out.number(table.size());
        table.keys().forEach(out::key);
      }
      case QUEUE_POP -> pop(request.key(), out);
      case QUEUE_LEN -> out.number(table.queueLength(request.key()));
      case BARRIER -> {
        if (add(request.key(), 1) < request.number()) {
          park(List.of(request.key()));
        } else {
          waiters.wake(request.key());
          out.oneByte(Query.READY);
        }
      }
      case PING -> out.word((int) request.number());
    }
  }

  private boolean hasAll(List<String> keys) {
    return keys.stream().allMatch(table::has);
  }

  /** Starts a wait; a barrier's key may be there already, and is awaited all the same. */
  private void park(List<String> keys) {
    waiters.forget(this);
    if (keys.size() == 1) {
      waiters.add(this, keys.get(0));
    } else {
      keys.stream().filter(key -> !table.has(key)).forEach(key -> waiters.add(this, key));
    }
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

  private void pop(String key, Outbox out) {
    out.number(table.queueLength(key));
    byte[] first = table.pop(key);
    if (first != null) {
      out.bytes(first, first.length);
    }
  }

  private static void value(Table.@Nullable Value value, Outbox out) {
    if (value == null) {
      out.number(0);
    } else {
      out.bytes(value.array(), value.length());
    }
  }
}
