#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/sort.cuh"

namespace fl::cuda {

template <class T>
void sort_rows(const Exec& exec, T* x, std::size_t K, std::size_t n) {
  if (n < 2) return;
  Workspace::Frame frame(*exec.workspace);
  constexpr int kAllBits = static_cast<int>(8 * sizeof(T));
  const cudaStream_t stream = stream_of(exec);
  T* sorted = frame.take<T>(n);
  std::size_t bytes = 0;
  FL_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, x, sorted, n, 0, kAllBits, stream));
  std::byte* scratch = frame.take<std::byte>(bytes);
  for (std::size_t k = 0; k < K; ++k, x += n) {
    FL_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(scratch, bytes, x, sorted, n, 0, kAllBits, stream));
    FL_CUDA_CHECK(cudaMemcpyAsync(x, sorted, n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }
}

std::uint32_t exclusive_scan(const Exec& exec, const std::uint32_t* in, std::size_t n, std::uint32_t* out) {
  if (n == 0) return 0;
  Workspace::Frame frame(*exec.workspace);
  const cudaStream_t stream = stream_of(exec);
  std::uint32_t last = 0, before = 0;
  FL_CUDA_CHECK(cudaMemcpyAsync(&last, in + n - 1, sizeof last, cudaMemcpyDeviceToHost, stream));
  std::size_t bytes = 0;
  FL_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, n, stream));
  FL_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(frame.take<std::byte>(bytes), bytes, in, out, n, stream));
  FL_CUDA_CHECK(cudaMemcpyAsync(&before, out + n - 1, sizeof before, cudaMemcpyDeviceToHost, stream));
  FL_CUDA_CHECK(cudaStreamSynchronize(stream));
  return before + last;
}

template void sort_rows<float>(const Exec&, float*, std::size_t, std::size_t);
template void sort_rows<double>(const Exec&, double*, std::size_t, std::size_t);
template void sort_rows<std::uint32_t>(const Exec&, std::uint32_t*, std::size_t, std::size_t);
template void sort_rows<std::uint64_t>(const Exec&, std::uint64_t*, std::size_t, std::size_t);

}  // namespace fl::cuda
