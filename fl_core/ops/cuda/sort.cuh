// Sorts and scans on the GPU, by CUB behind plain pointers: no CUB type leaves the source file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

// Every row of x [K,n], ascending, in place; many short rows at once. For float, double, std::uint32_t and std::uint64_t; where NaN goes is
// not specified.
template <class T>
FL_API void sort_rows(const Exec& exec, T* x, std::size_t K, std::size_t n);

// out[i] = in[0] + .. + in[i-1]; `out` may be `in`. Returns the sum of all, which must be below 2^32, and waits for it.
FL_API std::uint32_t exclusive_scan(const Exec& exec, const std::uint32_t* in, std::size_t n, std::uint32_t* out);

}  // namespace fl::cuda
