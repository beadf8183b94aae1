package dev.weft.c10d.store;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Stands before the requests of one client until it has shown that it knows the server's secret,
 * then removes itself. Used by the server's event loop only.
 */
final class SecretGate extends ByteToMessageDecoder {
  private static final Logger log = LoggerFactory.getLogger(SecretGate.class);
  private static final int OPENING_BYTES = 1 + Integer.BYTES;

  private final SharedSecret secret;
  private final byte[] serverNonce = SharedSecret.nonce();
  private byte[] clientNonce = {};
  private State state = State.OPENING;

  private enum State {
    OPENING,
    NONCE,
    PROOF,
    CLOSED
  }

  SecretGate(SharedSecret secret) {
    this.secret = secret;
  }

  @Override
  protected void decode(ChannelHandlerContext ctx, ByteBuf in, List<Object> out) {
    switch (state) {
      case OPENING -> open(ctx, in);
      case NONCE -> exchangeNonces(ctx, in);
      case PROOF -> check(ctx, in, out);
      case CLOSED -> in.skipBytes(in.readableBytes());
    }
  }

  private void open(ChannelHandlerContext ctx, ByteBuf in) {
    if (in.readableBytes() < OPENING_BYTES + 1) {
      return;
    }
    int query = in.readUnsignedByte();
    if (query != Query.VALIDATE.code() || in.readIntLE() != Query.MAGIC) {
      throw new ProtocolException("the first bytes are not those of a store client");
    }
    if (in.readUnsignedByte() == SharedSecret.HELLO) {
      state = State.NONCE;
      return;
    }
    refuse(
        ctx,
        in,
        Unpooled.buffer(Integer.BYTES).writeIntLE(SharedSecret.ASKED),
        "brings no shared secret");
  }

  private void exchangeNonces(ChannelHandlerContext ctx, ByteBuf in) {
    if (in.readableBytes() < SharedSecret.SIZE) {
      return;
    }
    clientNonce = new byte[SharedSecret.SIZE];
    in.readBytes(clientNonce);
    state = State.PROOF;
    var unused = ctx.writeAndFlush(Unpooled.wrappedBuffer(serverNonce));
  }

  private void check(ChannelHandlerContext ctx, ByteBuf in, List<Object> out) {
    if (in.readableBytes() < SharedSecret.SIZE) {
      return;
    }
    byte[] proof = new byte[SharedSecret.SIZE];
    in.readBytes(proof);
    if (!SharedSecret.same(proof, secret.clientProof(clientNonce, serverNonce))) {
      refuse(
          ctx,
          in,
          Unpooled.buffer(1).writeByte(SharedSecret.REFUSED),
          "does not know the shared secret");
      return;
    }
    byte[] own = secret.serverProof(clientNonce, serverNonce);
    var unused =
        ctx.writeAndFlush(
            Unpooled.buffer(1 + own.length).writeByte(SharedSecret.ACCEPTED).writeBytes(own));
    // To those behind, the connection begins here, as it would without a secret.
    out.add(
        Unpooled.buffer(OPENING_BYTES).writeByte(Query.VALIDATE.code()).writeIntLE(Query.MAGIC));
    ctx.pipeline().remove(this);
  }

  private void refuse(ChannelHandlerContext ctx, ByteBuf in, ByteBuf answer, String why) {
    state = State.CLOSED;
    in.skipBytes(in.readableBytes());
    log.warn("turning away store client {}, which {}", ctx.channel().remoteAddress(), why);
    var unused = ctx.writeAndFlush(answer).addListener(ChannelFutureListener.CLOSE);
  }
}
