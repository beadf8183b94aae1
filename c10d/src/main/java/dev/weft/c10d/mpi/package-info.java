/**
 * MPI through a library that is already on the machine: Open MPI 4 and 5, or MPICH and what shares
 * its binary interface. Nothing of MPI is needed to build or to use other backends.
 */
@NullMarked
package dev.weft.c10d.mpi;

import org.jspecify.annotations.NullMarked;
