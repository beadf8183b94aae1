/** What single calls cost the host, by JMH; run by {@code weft bench jmh}. */
@NullMarked
package dev.weft.bench.jmh;

import org.jspecify.annotations.NullMarked;
