package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  /** Each message has the argument, its value and what was expected. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--mesh dp=2,xx=2 | --mesh 'dp=2,xx=2': 'xx=2' is not understood; expected sizes of some of [dp, fsdp, pp, tp], each once",
        "--mesh dp=2,dp=2 | 'dp=2' is not understood; expected sizes of some of [dp, fsdp, pp, tp], each once",
        "--mesh dp=0 | --mesh 'dp=0'; expected sizes of at least 1",
        "--mesh dp=* | --mesh 'dp=*' has a *; expected numbers",
        "--mesh dp=3 | --batch 8 with --mesh dp=3 and --microbatches 1; expected a multiple of 3",
        "--mesh dp=2,pp=2 --batch 6 | --batch 6 with --mesh dp=2,pp=2 and --microbatches 2; expected a multiple of 4",
        "--mesh tp=3 | --mesh tp=3 with --heads 4; expected a multiple of tp=3",
        "--mesh tp=4 --kv-heads 2 | --mesh tp=4 with --kv-heads 2; expected a multiple of tp=4",
        "--mesh tp=2 --sequence-parallel --seq 63 | --mesh tp=2 with --seq 63; expected a multiple of tp=2",
        "--sequence-parallel | --sequence-parallel with --mesh dp=1; expected tp of 2 or more",
        "--mesh pp=4 | --mesh pp=4 with --stages-per-rank 1 makes 4 stages; expected at most the 2 of --layers",
        "--mesh pp=2 --tied | --tied with --mesh pp=2; expected one stage",
        "--mesh pp=2 --schedule chimera | --schedule 'chimera'; expected 1f1b or one of",
        "--mesh pp=2 --schedule interleaved --microbatches 3 --batch 6 | 3 microbatches on 2 ranks; expected a multiple of the ranks",
        "--mesh pp=2 --stages-per-rank 2 --layers 4 | 2 stages on each rank; expected 1 stage on each rank; INTERLEAVED takes more",
        "--microbatches -1 | --microbatches -1 with --stages-per-rank 1; expected 1 or more of each",
        "--device tpu | --device 'tpu'; expected cpu or cuda",
        "--kv-heads 3 | kv-heads is 3; expected a divisor of the 4 heads",
        "--width 60 | width is 60; expected a multiple of twice the 4 heads",
        "--layers 0 | layers is 0; expected 1 or more",
        "--data nowhere.txt | --data 'nowhere.txt' is not a readable file",
        "--tokenizer u16 | --vocab is not given with --tokenizer u16; expected the number of tokens",
        "--tokenizer u16 --vocab 9 | --tokenizer u16 without --data; expected a token file",
        "--vocab 9 | --vocab is 9 with --tokenizer byte",
        "--tokenizer bpe | Invalid value for option '--tokenizer'",
        "--seq 400000 | tokens to train on; expected at least 400002 for --seq 400000",
        "--seq 2147483647 | tokens to train on; expected at least 2147483649 for --seq",
        "--mesh dp=99999,tp=99999 | takes more ranks than there can be",
        "--seq 0 | --seq 0; expected 1 or more",
        "--held-out 0.9 | --held-out 0.9; expected 0 to 0.5",
        "--held-out 0.001 | --held-out 0.001 leaves 5 windows of 64 tokens to evaluate on; expected the 32",
        "--steps 5 | --steps 5 with --warmup 5; expected 0 <= warmup < steps",
        "--steps many | Invalid value for option '--steps': 'many' is not an int",
        "--min-lr 1 | --lr 0.003 with --min-lr 1.0; expected 0 <= min-lr <= lr",
        "--clip 0 | --clip 0.0; expected more than 0",
        "--weight-decay -1 | --weight-decay -1.0; expected 0 or more",
        "--beta2 1 | --beta1 0.9 with --beta2 1.0; expected 0 <= beta < 1",
        "--batch 0 | --batch 0; expected 1 or more",
        "--eval-every -2 | --eval-every -2; expected 0 or more",
        "--keep 0 | --keep 0 with --log-every 10; expected 1 or more of each",
        "--stop-after 3 | --checkpoint-every or --stop-after without --out; expected a folder",
        "--out pom.xml | --out 'pom.xml' is a file; expected a folder",
        "--speed 3 | Unknown options: '--speed', '3'"
      })
  void badArgumentsAreNamed(String arguments, String message) {
    assertThatThrownBy(() -> TrainOptions.parse(arguments.split(" ")).check(0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  void aMeshMakesUpTheWorld() {
    assertThat(ParallelDims.parse("tp=2,dp=*", 8)).isEqualTo(new ParallelDims(4, 1, 1, 2));
    assertThat(ParallelDims.parse(" fsdp=4, pp=2", 8)).isEqualTo(new ParallelDims(1, 4, 2, 1));
    assertThat(ParallelDims.parse("dp=1", 1)).hasToString("dp=1");
    assertThatThrownBy(() -> ParallelDims.parse("dp=2,tp=2", 8))
        .hasMessage(
            "--mesh 'dp=2,tp=2' takes 4 ranks, and the world has 8; expected them to be equal");
    assertThatThrownBy(() -> ParallelDims.parse("dp=*,tp=3", 8))
        .hasMessageContaining("takes a multiple of 3 ranks, and the world has 8");
    assertThatThrownBy(() -> ParallelDims.parse("dp=*,tp=*", 8))
        .hasMessageContaining("has more than one *");
  }

  /** On the ranks of a world that the mesh does not fit, all fail alike. */
  @Test
  void aWorldOfAnotherSizeIsRefusedOnEveryRank() {
    LocalWorld.run(
        2,
        rank ->
            assertThatThrownBy(
                    () ->
                        Train.run(
                            TrainOptions.parse("--mesh", "dp=4"),
                            new PrintStream(OutputStream.nullOutputStream())))
                .hasMessageContaining("takes 4 ranks, and the world has 2"));
  }

  @Test
  void oddFilesAreRefused(@TempDir Path folder) throws IOException {
    Path odd = Files.write(folder.resolve("odd"), new byte[201]);
    assertThatThrownBy(
            () ->
                TrainOptions.parse("--data", odd.toString(), "--tokenizer", "u16", "--vocab", "9")
                    .check(0))
        .hasMessage(
            "--data '%s' has 201 bytes; expected a multiple of the 2 bytes of a token", odd);
    Path latin = Files.write(folder.resolve("latin"), new byte[] {(byte) 0xe4, 'a'});
    assertThatThrownBy(
            () -> TrainOptions.parse("--data", latin.toString(), "--tokenizer", "char").check(0))
        .hasMessageContaining("is no UTF-8 text; expected one for --tokenizer char");
  }

  /** What ranks are started with says the same as what was typed. */
  @Test
  void argumentsForRanksSayTheSame() {
    TrainOptions typed =
        TrainOptions.parse(
            "--mesh",
            "dp=2,tp=2",
            "--in-process",
            "--warmup",
            "0",
            "--tied",
            "--tokenizer",
            "char",
            "--out",
            "a b",
            "--lr",
            "1e-3");
    TrainOptions passed = TrainOptions.parse(typed.toArguments().toArray(String[]::new));
    assertThat(passed.inProcess()).isFalse();
    var expected = typed.values();
    expected.remove("--in-process");
    assertThat(passed.values()).isEqualTo(expected);
    assertThat(expected)
        .containsEntry("--warmup", "0")
        .containsEntry("--out", "a b")
        .containsEntry("--tied", "true");
  }

  @Test
  void theRateRisesAndFalls() {
    OptimizerOptions o =
        TrainOptions.parse("--lr", "1", "--min-lr", "0.1", "--steps", "110", "--warmup", "10")
            .optimizer;
    assertThat(o.schedule().at(0)).isEqualTo(0.1);
    assertThat(o.schedule().at(9)).isEqualTo(1);
    assertThat(o.schedule().at(10)).isEqualTo(1);
    assertThat(o.schedule().at(60)).isCloseTo(0.55, org.assertj.core.data.Offset.offset(1e-12));
    assertThat(o.schedule().at(110)).isCloseTo(0.1, org.assertj.core.data.Offset.offset(1e-12));
  }
}
