package dev.weft.examples.guide;

import dev.weft.examples.trainer.LossRow;
import dev.weft.examples.trainer.Train;
import dev.weft.examples.trainer.TrainOptions;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The programs of {@code docs/guide/trainer.md}. */
final class TrainerGuide {
  private TrainerGuide() {}

  private static LossRow train(String arguments) {
    TrainOptions options = TrainOptions.parse(arguments.split(" "));
    List<LossRow> rows = Train.inProcess(options, new PrintStream(OutputStream.nullOutputStream()));
    return rows.get(rows.size() - 1);
  }

  @Ranks(0)
  static void meshes() {
    for (String mesh : List.of("dp=1", "dp=2,pp=2,tp=2", "fsdp=4,tp=2", "dp=2,fsdp=2,pp=2")) {
      LossRow last = train("--steps 6 --eval-batches 0 --mesh " + mesh);
      System.out.printf("%-16s loss %.4f, norm %.3f%n", mesh, last.loss(), last.gradNorm());
    }
  }

  @Ranks(0)
  static void resharding() throws IOException {
    Path run = Files.createTempDirectory("run");
    String all = "--steps 8 --eval-batches 0 --out " + run;
    LossRow third = train(all + " --mesh dp=4 --stop-after 3");
    LossRow last = train(all + " --mesh pp=2,tp=2"); // goes on with step 4, sample 24
    LossRow straight = train("--steps 8 --eval-batches 0");
    System.out.printf("after %d tokens: %.4f%n", third.tokens(), third.loss());
    System.out.printf("after %d tokens: %.4f%n", last.tokens(), last.loss());
    System.out.printf("without a stop:    %.4f%n", straight.loss());
  }

  @Ranks(0)
  static void tokenFiles() throws IOException {
    ByteBuffer tokens = ByteBuffer.allocate(2 * 20_000).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 20_000; i++) {
      tokens.putShort((short) (i * i % 101 * 9)); // unsigned, 16 bits
    }
    Path file = Files.write(Files.createTempFile("tokens", ".u16"), tokens.array());
    LossRow last =
        train("--data " + file + " --tokenizer u16 --vocab 1000 --seq 32 --steps 12 --lr 1e-2");
    System.out.printf("loss %.2f; of any of 1000: %.2f%n", last.loss(), Math.log(1000));
  }
}
