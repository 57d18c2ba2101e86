// What the counting emulator has counted for the rows of gpu_bench (gpu_counts.inc), and the time that follows for a GPU.
//
// A GPU can do no better than the slower of its memory and its multipliers:
//   predicted = max(bytes that are moved / speed of the copy, operations / peak of that kind of product)
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace fl::bench {

enum class Products { full, tf32, bf16 };

// Per parameter of a client (operators, aggregation), per client and step (training).
struct CountedRow {
  const char* stage;
  const char* name;
  double floor;       // bytes that have to be read and written, the message among them
  double sectors;     // the same where memory gives whole sectors, which numbers at single places do not fill
  double moved;       // bytes that kernels and copies move, without a second-level cache
  double distinct;    // with an endless one: sectors that are touched by each kernel
  double operations;  // of the products of matrices
  Products products;
};

inline constexpr CountedRow kCountedRows[] = {
#include "bench/gpu_counts.inc"
    {nullptr, nullptr, 0, 0, 0, 0, 0, Products::full},
};

// Null where nothing was counted.
[[nodiscard]] inline const CountedRow* counted_row(const std::string& stage, const std::string& name) {
  for (const CountedRow* row = kCountedRows; row->stage != nullptr; ++row)
    if (stage == row->stage && name == row->name) return row;
  return nullptr;
}

// What a GPU can do in a second.
struct Ceilings {
  double bytes;       // read and written by a copy
  double operations;  // of float32; of products in TF32 and in BF16
  double tf32, bf16;
};
// NVIDIA's data sheets of H100 SXM and H200: dense products, without sparsity. gpu_bench puts the speed of its own copy in.
inline constexpr Ceilings kH100{3.35e12, 67e12, 494.7e12, 989.4e12}, kH200{4.8e12, 67e12, 494.7e12, 989.4e12};

// Of the GPU that is here: the speed of its copy is measured, its peaks are published where they are known. Elsewhere bytes alone count.
[[nodiscard]] inline Ceilings ceilings_of(const std::string& device, double bytes_per_second) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  Ceilings gpu{bytes_per_second, kUnknown, kUnknown, kUnknown};
  for (const auto& [name, known] : {std::pair{"H100", kH100}, std::pair{"H200", kH200}})
    if (device.find(name) != std::string::npos) gpu = {bytes_per_second, known.operations, known.tf32, known.bf16};
  return gpu;
}

// Clients' steps share what the second-level cache holds, parameters of a client above all; operators read everything once.
[[nodiscard]] inline double predicted_seconds(const CountedRow& row, double times, const Ceilings& gpu) {
  const double bytes = row.operations > 0 ? row.distinct : row.moved;
  const double peak = row.products == Products::tf32 ? gpu.tf32 : row.products == Products::bf16 ? gpu.bf16 : gpu.operations;
  return times * std::max(bytes / gpu.bytes, row.operations / peak);
}
// The same of the row with this name, `times` a parameter or a client's step; 0 where nothing was counted.
[[nodiscard]] inline double predicted_seconds(const std::string& stage, const std::string& name, double times, const Ceilings& gpu) {
  const CountedRow* row = counted_row(stage, name);
  return row == nullptr ? 0 : predicted_seconds(*row, times, gpu);
}

}  // namespace fl::bench
