// Random numbers for the operands of the GPU benchmarks, drawn by a kernel, so that nothing is uploaded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/random/random.hpp"

namespace fl::bench {

// Returns the number of position j of client k: the sum of four uniform numbers, which is approximately normal, in [-2, 2).
[[nodiscard]] FL_HD inline float operand_number(std::uint64_t k, std::uint64_t j) {
  const std::uint64_t bits = hash64(k, j);
  return static_cast<float>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48)) * 0x1p-16f - 2;
}

// Writes operand_number(k, j) to memory of the GPU, in the order of exec's stream. out: [K,P]
void draw_operands(const Exec& exec, float* out, std::size_t K, std::size_t P);

}  // namespace fl::bench
