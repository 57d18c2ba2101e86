// Executes one instruction of AVX-512 and ends with 0. The stage `haswell` of .ci/run expects that its processor refuses the instruction.
int main() {
  asm volatile("vpxord %zmm0, %zmm0, %zmm0");
  return 0;
}
