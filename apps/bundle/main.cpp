// One program for a machine that has a GPU and nothing else installed. The name under which it is called, or else the first word, selects
// the program:
//
//   fedbits                the command line
//   fedbits_gpu_parity     the GPU tests, with the options of GoogleTest
//   gpu_bench              the GPU benchmarks
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <string>

int fedbits_main(int argc, char** argv);
int gpu_bench_main(int argc, char** argv);

namespace {

int gpu_tests_main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

struct Program {
  const char* name;
  int (*main)(int, char**);
};
constexpr Program kPrograms[] = {{"fedbits", fedbits_main}, {"fedbits_gpu_parity", gpu_tests_main}, {"gpu_bench", gpu_bench_main}};

const Program* find_program(const std::string& name) {
  for (const Program& program : kPrograms)
    if (name == program.name) return &program;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0)
    if (const Program* program = find_program(std::filesystem::path(argv[0]).filename().string())) return program->main(argc, argv);
  if (argc > 1)
    if (const Program* program = find_program(argv[1])) return program->main(argc - 1, argv + 1);
  std::fprintf(stderr, "usage: %s fedbits | fedbits_gpu_parity | gpu_bench [its options]\n", argc > 0 ? argv[0] : "fedbits_bundle");
  return 2;
}
