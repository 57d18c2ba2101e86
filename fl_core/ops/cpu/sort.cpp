#include "fl_core/ops/cpu/sort.hpp"

#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>

namespace fl::cpu {

template <class T>
void sort_rows(const Exec&, T* x, std::size_t K, std::size_t n) {
  for (std::size_t k = 0; k < K; ++k, x += n) thrust::sort(thrust::cpp::par, x, x + n);
}

std::uint32_t exclusive_scan(const Exec&, const std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  if (n == 0) return 0;
  const std::uint32_t last = in[n - 1];
  thrust::exclusive_scan(thrust::cpp::par, in, in + n, out, std::uint32_t{0});
  return out[n - 1] + last;
}

template void sort_rows<float>(const Exec&, float*, std::size_t, std::size_t);
template void sort_rows<double>(const Exec&, double*, std::size_t, std::size_t);
template void sort_rows<std::uint32_t>(const Exec&, std::uint32_t*, std::size_t, std::size_t);
template void sort_rows<std::uint64_t>(const Exec&, std::uint64_t*, std::size_t, std::size_t);

}  // namespace fl::cpu
