package dev.weft.c10d;

/**
 * What one kind of backend can be told when a group is made; each has a class of its own, and takes
 * no notice of others' options. Immutable.
 */
public interface BackendOptions {}
