// Executes one instruction of AVX-512 and ends with 0. The processor of the preset `haswell` has to refuse the instruction.
int main() {
  asm volatile("vpxord %zmm0, %zmm0, %zmm0");
  return 0;
}
