#include "fl_core/ops/cuda/diagnosis.hpp"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fl_core/config/error.hpp"

namespace fl::cuda {
namespace {

[[nodiscard]] std::string_view value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

[[nodiscard]] std::optional<std::uint64_t> whole_number(const char* variable, std::uint64_t least) {
  const std::string_view text = value_of(variable);
  if (text.empty()) return {};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least)
    throw ConfigError(std::string(variable) + " is \"" + std::string(text) + "\", and has to be a whole number of at least " +
                      std::to_string(least));
  return number;
}

[[nodiscard]] Diagnosis from_environment() {
  Diagnosis asked;
  const std::string_view pool = value_of("FEDBITS_CUDA_POOL");
  if (!pool.empty() && pool != "on" && pool != "off")
    throw ConfigError("FEDBITS_CUDA_POOL is \"" + std::string(pool) + "\", and has to be \"on\" or \"off\"");
  asked.pools_memory = pool != "off";
  asked.delay_seed = whole_number("FEDBITS_CUDA_DELAY", 1).value_or(0);
  if (const auto way = whole_number("FEDBITS_CUDA_WAY", 0)) asked.way = static_cast<std::size_t>(*way);
  asked.times_file = value_of("FEDBITS_CUDA_TIMES");
  return asked;
}

}  // namespace

const Diagnosis& diagnosis() {
  static const Diagnosis asked = from_environment();
  return asked;
}

}  // namespace fl::cuda
