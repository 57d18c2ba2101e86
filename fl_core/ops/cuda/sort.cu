#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <vector>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/ops/cuda/sort.cuh"

namespace fl::cuda {
namespace {

template <class T>
constexpr int kAllBits = static_cast<int>(8 * sizeof(T));

// One row after another, each by the whole GPU.
template <class T>
void sort_one_by_one(const Exec& exec, T* x, std::size_t K, std::size_t n) {
  Workspace::Frame frame(*exec.workspace);
  const cudaStream_t stream = stream_of(exec);
  T* sorted = frame.take<T>(n);
  std::size_t bytes = 0;
  FL_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, x, sorted, n, 0, kAllBits<T>, stream));
  std::byte* scratch = frame.take<std::byte>(bytes);
  for (std::size_t k = 0; k < K; ++k, x += n) {
    FL_CUDA_CHECK(cub::DeviceRadixSort::SortKeys(scratch, bytes, x, sorted, n, 0, kAllBits<T>, stream));
    FL_CUDA_CHECK(cudaMemcpyAsync(x, sorted, n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }
}

// All rows at once, each by a block of threads.
template <class T>
void sort_side_by_side(const Exec& exec, T* x, std::size_t K, std::size_t n) {
  Workspace::Frame frame(*exec.workspace);
  const cudaStream_t stream = stream_of(exec);
  std::vector<std::int32_t> begin;
  for (std::size_t k = 0; k <= K; ++k) begin.push_back(static_cast<std::int32_t>(k * n));
  const std::int32_t* begins = upload(exec, std::span<const std::int32_t>(begin), frame);
  const auto numbers = static_cast<std::int32_t>(K * n), rows = static_cast<std::int32_t>(K);
  T* sorted = frame.take<T>(K * n);
  std::size_t bytes = 0;
  const auto sort = [&](std::byte* scratch) {
    FL_CUDA_CHECK(cub::DeviceSegmentedRadixSort::SortKeys(scratch, bytes, static_cast<const T*>(x), sorted, numbers, rows, begins,
                                                          begins + 1, 0, kAllBits<T>, stream));
  };
  sort(nullptr);
  sort(frame.take<std::byte>(bytes));
  FL_CUDA_CHECK(cudaMemcpyAsync(x, sorted, K * n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

template <class T>
void sort_rows(const Exec& exec, T* x, std::size_t K, std::size_t n) {
  constexpr std::size_t kFewRows = 16, kLongRow = std::size_t{1} << 16, kMostNumbers = std::size_t{1} << 28;
  if (n < 2) return;
  if (K < kFewRows || n > kLongRow) return sort_one_by_one(exec, x, K, n);
  for (std::size_t first = 0, some = kMostNumbers / n; first < K; first += some)
    sort_side_by_side(exec, x + first * n, std::min(some, K - first), n);
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
