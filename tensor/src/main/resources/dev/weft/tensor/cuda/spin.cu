// Keeps the device busy for some nanoseconds, for tests of order and time.
extern "C" __global__ void spin(i64 nanoseconds) {
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < (u64)nanoseconds);
}
