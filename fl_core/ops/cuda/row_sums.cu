#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/ops/cuda/row_sums.hpp"

namespace fl::cuda {
namespace {

// A thread owns a coordinate.
template <class T>
__global__ void add_weighted_rows(BatchView<const T> rows, std::size_t num_rows, const double* factor, std::size_t P, double* sum) {
  for (std::size_t j = thread_index(); j < P; j += num_threads()) {
    double total = sum[j];
    for (std::size_t k = 0; k < num_rows; ++k) total += factor[k] * static_cast<double>(rows.row(k)[j]);
    sum[j] = total;
  }
}

}  // namespace

template <class T>
void add_rows(const Exec& exec, BatchView<const T> rows, std::span<const double> factor, std::span<double> sum) {
  Workspace::Frame frame(*exec.workspace);
  if (rows.rows != nullptr) rows.rows = upload(exec, std::span<const std::uint32_t>(rows.rows, factor.size()), frame);
  auto* there = frame.take<double>(sum.size());
  ::fl::copy_bytes(there, Device::cuda, sum.data(), Device::cpu, sum.size_bytes(), exec.stream);
  Launch(exec, "add_weighted_rows", blocks_for(sum.size()))(add_weighted_rows<T>, rows, factor.size(), upload(exec, factor, frame),
                                                            sum.size(), there);
  ::fl::copy_bytes(sum.data(), Device::cpu, there, Device::cuda, sum.size_bytes(), exec.stream);
}

template void add_rows<float>(const Exec&, BatchView<const float>, std::span<const double>, std::span<double>);
template void add_rows<double>(const Exec&, BatchView<const double>, std::span<const double>, std::span<double>);

}  // namespace fl::cuda
