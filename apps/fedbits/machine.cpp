#include "apps/fedbits/machine.hpp"

#include <fstream>

#include "fl_core/error.hpp"
#if defined(FL_WITH_CUDA)
#include "fl_core/cuda/memory.hpp"
#endif

namespace fl {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

// The level the binary was built for, which decides the bits of a result.
constexpr const char* instruction_set() {
#if defined(__AVX512F__) && defined(__AVX512VL__)
  return "x86-64-v4";
#elif defined(__AVX2__) && defined(__FMA__)
  return "x86-64-v3";
#elif defined(__x86_64__)
  return "x86-64";
#else
  return "other";
#endif
}

// Why a run cannot use a GPU here. Operators have a CUDA half; local training has none.
std::string why_no_cuda() {
#if defined(FL_WITH_CUDA)
  const int count = cuda::device_count();
  if (count == 0) return "no GPU is visible to the CUDA driver";
  return std::to_string(count) + (count == 1 ? " GPU was" : " GPUs were") +
         " found and operators are compiled for it, but clients train on the CPU only";
#else
  return "runs on a GPU are not available in this build";
#endif
}

}  // namespace

void describe_machine(RunRecord& record) {
  record.cpu = cpu_model();
  record.instruction_set = instruction_set();
#if defined(__clang__)
  record.compiler = "clang " __clang_version__;
#else
  record.compiler = "gcc " __VERSION__;
#endif
}

void require_device(const std::string& device) {
  if (device == "cpu" || device == "auto") return;
  if (device == "cuda") throw DeviceError("--device cuda: " + why_no_cuda() + "; use --device cpu (or auto)");
  const std::string near = nearest_name(device, {"cpu", "cuda", "auto"});
  throw ConfigError("--device: must be one of cpu, cuda, auto; is '" + device + "'" +
                    (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace fl
