// Memory traffic counted by the emulator for the rows of gpu_bench (gpu_counts.inc), and the time that follows for a GPU.
//
// A GPU is at best as fast as the slower of its memory and its multipliers:
//   predicted = max(bytes moved / speed of the copy, operations / (share * peak of that kind of product))
//
// where `share` is the part of the peak that the machine code allows: a scheduler starts one instruction in a cycle, and those that
// multiply are only some of the instructions of a product's inner loop.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace fl::bench {

enum class Products { full, tf32, bf16 };

// The largest share among the kernels of a kind for sm_90, from `scripts/gpu_resources.py BUILD --products` (nvcc 13.0). Tiles of 64 x 128
// have it; smaller ones, for small batches, have less. The regressions' kernel computes its sums in loops of its own.
inline constexpr double kRegressionShare = 0.40;
[[nodiscard]] constexpr double share_of_tiles(Products products) {
  switch (products) {
    case Products::tf32: return 0.235;
    case Products::bf16: return 0.149;
    case Products::full: break;
  }
  return 0.756;
}

// Counts per parameter of a client (operators, aggregation), or per client and step (training).
struct CountedRow {
  const char* stage;
  const char* name;
  double floor;       // bytes that must be read and written, including the message
  double sectors;     // the same in whole memory sectors, which scattered numbers do not fill
  double moved;       // bytes moved by kernels and copies, without a second-level cache
  double distinct;    // with an infinite second-level cache: sectors that each kernel touches
  double operations;  // of matrix products
  Products products;
  double share;  // of the peak of these products; 1 if there are none
};

inline constexpr CountedRow kCountedRows[] = {
#include "bench/gpu_counts.inc"
    {nullptr, nullptr, 0, 0, 0, 0, 0, Products::full, 1},
};

// Returns null if nothing was counted.
[[nodiscard]] inline const CountedRow* counted_row(const std::string& stage, const std::string& name) {
  for (const CountedRow* row = kCountedRows; row->stage != nullptr; ++row)
    if (stage == row->stage && name == row->name) return row;
  return nullptr;
}

// Peak rates of a GPU per second.
struct Ceilings {
  double bytes;       // bytes read and written by a copy
  double operations;  // of float32; tf32 and bf16: of products
  double tf32, bf16;
};
// Values from NVIDIA's data sheets for H100 SXM and H200: dense products, without sparsity. gpu_bench replaces the speed of the copy by
// its own measurement.
inline constexpr Ceilings kH100{3.35e12, 67e12, 494.7e12, 989.4e12}, kH200{4.8e12, 67e12, 494.7e12, 989.4e12};

// Returns the rates of the present GPU: the measured speed of its copy, and published peaks if they are known. For other GPUs only bytes
// count.
[[nodiscard]] inline Ceilings ceilings_of(const std::string& device, double bytes_per_second) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  Ceilings gpu{bytes_per_second, kUnknown, kUnknown, kUnknown};
  for (const auto& [name, known] : {std::pair{"H100", kH100}, std::pair{"H200", kH200}})
    if (device.find(name) != std::string::npos) gpu = {bytes_per_second, known.operations, known.tf32, known.bf16};
  return gpu;
}

// Returns the predicted time. The second-level cache serves several steps of clients, mainly with parameters; operators read everything
// once.
[[nodiscard]] inline double predicted_seconds(const CountedRow& row, double times, const Ceilings& gpu) {
  const double bytes = row.operations > 0 ? row.distinct : row.moved;
  const double peak = row.products == Products::tf32 ? gpu.tf32 : row.products == Products::bf16 ? gpu.bf16 : gpu.operations;
  return times * std::max(bytes / gpu.bytes, row.operations / (row.share * peak));
}
// Does the same for the row with this name, `times` a parameter or a client's step. Returns 0 if nothing was counted.
[[nodiscard]] inline double predicted_seconds(const std::string& stage, const std::string& name, double times, const Ceilings& gpu) {
  const CountedRow* row = counted_row(stage, name);
  return row == nullptr ? 0 : predicted_seconds(*row, times, gpu);
}

}  // namespace fl::bench
