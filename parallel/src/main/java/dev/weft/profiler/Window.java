package dev.weft.profiler;

import java.util.List;
import java.util.Map;

/**
 * What was recorded in one repetition of a schedule.
 *
 * @param firstStep the number of its first step that is kept
 * @param lastStep that of its last
 * @param start in {@link System#nanoTime}
 * @param end in {@link System#nanoTime}
 * @param clock at its begin
 * @param threads what each thread did
 * @param deviceBytes live bytes by device at its end
 */
record Window(
    long firstStep,
    long lastStep,
    long start,
    long end,
    ClockOffset clock,
    List<Recorder.Notes> threads,
    Map<Integer, Long> deviceBytes) {}
