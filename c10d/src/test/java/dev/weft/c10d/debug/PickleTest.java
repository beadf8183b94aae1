package dev.weft.c10d.debug;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Plain values as pickles; anything but plain values is refused. */
class PickleTest {
  @Test
  void plainValuesComeBack() throws IOException {
    Map<String, @Nullable Object> value = new LinkedHashMap<>();
    value.put("numbers", List.of(0L, -1L, 255L, 65_536L, Long.MAX_VALUE, Long.MIN_VALUE, 1.5));
    value.put("text", "\u00e9\u4e2d\ud83d\ude00");
    value.put("others", Arrays.asList(null, true, false, List.of(), Map.of()));
    value.put("pair", new Tuple(List.of("a", "b")));
    assertThat(PickleReader.read(PickleWriter.pickle(value))).isEqualTo(value);
  }

  /** {@code pickle.dumps({"a": [1, (2, 300, "x")], "b": -1.5}, 4)}. */
  @Test
  void pythonsOwnPicklesAreRead() throws IOException {
    String python =
        "\u0080\u0004\u0095\u0028\u0000\u0000\u0000\u0000\u0000\u0000\u0000}\u0094(\u008c\u0001a"
            + "\u0094]\u0094(K\u0001K\u0002M\u002c\u0001\u008c\u0001x\u0094\u0087\u0094e"
            + "\u008c\u0001b\u0094G\u00bf\u00f8\u0000\u0000\u0000\u0000\u0000\u0000u.";
    assertThat(PickleReader.read(python.getBytes(ISO_8859_1)))
        .isEqualTo(Map.of("a", List.of(1L, List.of(2L, 300L, "x")), "b", -1.5));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cos\nsystem\n(S'true'\ntR.", // calls a function
        "\u0080\u0004\u008c\u0002os\u008c\u0006system\u0093.", // names one
        "\u0080\u0002]q\u0000h\u0000a.", // a list that holds itself
        "\u0080\u0002X\u00ff\u00ff\u00ff\u007fabc.", // a length that is not there
        "\u0080\u0002(", // cut short
        "}K\u0001s." // a value without a key
      })
  void anythingElseIsRefused(String pickle) {
    assertThatThrownBy(() -> PickleReader.read(pickle.getBytes(ISO_8859_1)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("the pickle");
  }
}
