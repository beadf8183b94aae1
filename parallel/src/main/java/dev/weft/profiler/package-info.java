/**
 * What a run does: {@code Profiler} records operators and collectives as a trace, {@code CommDebug}
 * counts collectives by module, {@code TraceMerge} joins the traces of all ranks.
 */
@NullMarked
package dev.weft.profiler;

import org.jspecify.annotations.NullMarked;
