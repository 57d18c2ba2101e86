#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/row_moves.hpp"

namespace fl::cuda {
namespace {

// A thread owns entries: i = k * P + j.
template <class T>
__global__ void copy_entries(std::size_t entries, BatchView<const T> from, BatchView<T> to) {
  for (std::size_t i = thread_index(); i < entries; i += num_threads()) {
    const std::size_t k = i / to.P, j = i - k * to.P;
    to.row(k)[j] = from.row(k)[j];
  }
}

template <class T>
__global__ void clear(std::size_t clients, BatchView<T> rows, std::size_t begin, std::size_t count) {
  for (std::size_t i = thread_index(); i < clients * count; i += num_threads()) {
    const std::size_t k = i / count;
    rows.row(k)[begin + i - k * count] = T(0);
  }
}

}  // namespace

template <class T>
void copy_rows(const Exec& exec, BatchView<const T> from, BatchView<T> to) {
  const std::size_t entries = std::size_t{to.K} * to.P;
  if (entries > 0) Launch(exec, "copy_rows", blocks_for(entries))(copy_entries<T>, entries, from, to);
}

template <class T>
void clear_entries(const Exec& exec, BatchView<T> rows, std::size_t begin, std::size_t end) {
  const std::size_t clients = rows.K, count = end - begin;
  if (clients * count > 0) Launch(exec, "clear_entries", blocks_for(clients * count))(clear<T>, clients, rows, begin, count);
}

template void copy_rows<float>(const Exec&, BatchView<const float>, BatchView<float>);
template void copy_rows<double>(const Exec&, BatchView<const double>, BatchView<double>);
template void clear_entries<float>(const Exec&, BatchView<float>, std::size_t, std::size_t);
template void clear_entries<double>(const Exec&, BatchView<double>, std::size_t, std::size_t);

}  // namespace fl::cuda
