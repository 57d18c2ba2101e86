#include "study/machine/machine.hpp"

#include <fstream>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "study/machine/version_text.hpp"

namespace fl {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

// Returns the instruction-set level of the binary, which affects the bits of a result.
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

}  // namespace

std::uint64_t free_device_bytes() { return cuda::free_bytes_of_device(); }

void describe_machine(RunRecord& record, Device device) {
  record.device = to_string(device);
  if (device == Device::cuda) record.device = cuda::device_name();
  record.cpu = cpu_model();
  record.instruction_set = instruction_set();
  record.compiler = build_compiler();
}

Device choose_device(const std::string& name) {
  if (name == "cpu") return Device::cpu;
  if (name == "auto") return cuda::why_no_device().empty() && shares_managed_memory() ? Device::cuda : Device::cpu;
  if (name == "cuda") {
    if (const std::string why = cuda::why_no_device(); !why.empty())
      throw DeviceError("--device cuda: " + why + "; use --device cpu (or auto)");
    return Device::cuda;
  }
  const bool is_gpu = name.starts_with("gpu") || name.starts_with("cuda") || name == "nvidia";
  const std::string near = is_gpu ? "cuda" : nearest_name(name, {"cpu", "cuda", "auto"});
  throw ConfigError("--device: must be one of cpu, cuda, auto; is '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace fl
