package dev.weft.c10d.store;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.io.BaseEncoding;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The bytes that a PyTorch client exchanged with a PyTorch server, sent to this server: the answers
 * are the same bytes.
 */
class TcpStoreTranscriptTest {
  private static final BaseEncoding HEX = BaseEncoding.base16().lowerCase();

  /** Whatever the segments are that TCP makes of a request, the server answers alike. */
  @ParameterizedTest
  @ValueSource(ints = {Integer.MAX_VALUE, 7, 1})
  void answersAsPyTorchDoes(int segment) throws Exception {
    JsonNode records = Golden.read("tcpstore-transcripts.json.gz").get("records");
    Map<Integer, Socket> connections = new HashMap<>();
    try (var store = StoreKind.tcp();
        var helper = TcpStore.at("127.0.0.1", store.port()).waitForWorkers(false).open()) {
      int replies = 0;
      for (JsonNode record : records) {
        for (JsonNode exchange : record.get("exchanges")) {
          if (!exchange.has("hex")) {
            continue; // the two records that end with the server closing the connection: see
            // TcpStoreServerTest
          }
          int number = exchange.get("conn").asInt();
          if (!connections.containsKey(number)) {
            connections.put(number, connect(store.port()));
          }
          Socket socket = connections.get(number);
          byte[] bytes = HEX.decode(exchange.get("hex").asText());
          String name = record.get("name").asText();
          if (exchange.get("dir").asText().equals("c2s")) {
            send(socket, bytes, segment);
            doWhatTheOtherClientDid(name, bytes, helper);
          } else {
            byte[] answer = new byte[bytes.length];
            new DataInputStream(socket.getInputStream()).readFully(answer);
            if (name.contains("list_keys")) {
              assertThat(keys(answer)).as(name).isEqualTo(keys(bytes));
            } else {
              assertThat(HEX.encode(answer)).as(name).isEqualTo(HEX.encode(bytes));
            }
            replies++;
          }
        }
      }
      assertThat(replies).as("answers compared").isEqualTo(48);
    } finally {
      for (Socket socket : connections.values()) {
        socket.close();
      }
    }
  }

  private static Socket connect(int port) throws IOException {
    var socket = new Socket(InetAddress.getLoopbackAddress(), port);
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(5000);
    return socket;
  }

  private static void send(Socket socket, byte[] bytes, int segment) throws IOException {
    OutputStream out = socket.getOutputStream();
    for (int from = 0; from < bytes.length; from += Math.min(segment, bytes.length - from)) {
      out.write(bytes, from, Math.min(segment, bytes.length - from));
      out.flush();
    }
  }

  /** Some records were made while another client wrote the key that the recorded one waits for. */
  private static void doWhatTheOtherClientDid(String name, byte[] request, Store other) {
    boolean waits = request[0] == Query.WAIT.code() || request[0] == Query.BARRIER.code();
    if (!waits) {
      return;
    }
    switch (name.toLowerCase(Locale.ROOT)) {
      case "get_released_later" -> other.set("n1b7o2", "605w");
      case "wait_two_released" -> {
        other.add("b09gl", 1);
        other.append("shv616mt", "x");
      }
      case "queue_pop_released_later" -> other.queuePush("q", "9oz6ww3");
      case "barrier_released" -> other.barrier("pair", 2);
      default -> {}
    }
  }

  private static TreeSet<String> keys(byte[] reply) {
    var buffer = java.nio.ByteBuffer.wrap(reply).order(java.nio.ByteOrder.LITTLE_ENDIAN);
    var keys = new TreeSet<String>();
    long count = buffer.getLong();
    for (long i = 0; i < count; i++) {
      byte[] key = new byte[(int) buffer.getLong()];
      buffer.get(key);
      keys.add(HEX.encode(key));
    }
    return keys;
  }
}
