/**
 * Device meshes: the world's ranks as an n-dimensional array whose dimensions have names, and the
 * process groups along them.
 */
@NullMarked
package dev.weft.mesh;

import org.jspecify.annotations.NullMarked;
