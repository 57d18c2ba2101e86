// Sorts and scans on the CPU, single-threaded, by Thrust behind plain pointers: no Thrust type leaves the source file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/memory/exec.hpp"

namespace fl::cpu {

// Every row of x [K,n], ascending, in place. For float, double, std::uint32_t and std::uint64_t; where NaN goes is not specified.
template <class T>
FL_API void sort_rows(const Exec& exec, T* x, std::size_t K, std::size_t n);

// out[i] = in[0] + .. + in[i-1]; `out` may be `in`. Returns the sum of all, which must be below 2^32.
FL_API std::uint32_t exclusive_scan(const Exec& exec, const std::uint32_t* in, std::size_t n, std::uint32_t* out);

}  // namespace fl::cpu
