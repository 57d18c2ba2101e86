#include "fl_core/ops/row_sums.hpp"

#include <algorithm>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cuda/row_sums.hpp"

namespace fl {

template <class T>
struct RowSums<T>::OnDevice {
  OnDevice() {
    exec.device = Device::cuda;
    exec.stream = stream.get();
    exec.workspace = &workspace;
  }
  DeviceStream stream{Device::cuda};
  Workspace workspace{Device::cuda};
  Exec exec;
};

template <class T>
RowSums<T>::RowSums(ThreadPool& pool) : pool_(pool) {}

template <class T>
RowSums<T>::~RowSums() = default;

// Threads share coordinates, never rows.
template <class T>
void RowSums<T>::add(Device memory, BatchView<const T> rows, std::span<const double> factor, std::span<double> sum) {
  if (factor.empty() || sum.empty()) return;
  if (memory != Device::cpu) {
    if (device_ == nullptr) device_ = std::make_unique<OnDevice>();
    return cuda::add_rows(device_->exec, rows, factor, sum);
  }
  constexpr std::size_t kPiece = 2048;  // coordinates: 16 KiB of the sum
  const auto pieces = static_cast<std::uint32_t>((sum.size() + kPiece - 1) / kPiece);
  pool_.parallel_for(pieces, [&](std::uint32_t piece, const Exec&) {
    const std::size_t first = piece * kPiece, last = std::min(sum.size(), first + kPiece);
    for (std::size_t k = 0; k < factor.size(); ++k) {
      const T* v = rows.row(k);
      for (std::size_t j = first; j < last; ++j) sum[j] += factor[k] * static_cast<double>(v[j]);
    }
  });
}

template class RowSums<float>;
template class RowSums<double>;

}  // namespace fl
