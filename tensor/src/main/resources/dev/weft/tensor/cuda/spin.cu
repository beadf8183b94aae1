// Keeps one thread busy for so many clock cycles.
extern "C" __global__ void spin(i64 cycles) {
  i64 start = clock64();
  while (clock64() - start < cycles) {
  }
}
