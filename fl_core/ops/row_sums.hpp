// Weighted sums of clients' rows, computed on the device of the rows: sum_j += sum_k factor_k v_kj in double, one row after another, so
// that every device and any number of threads give the same bits.
#pragma once

#include <memory>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/memory/thread_pool.hpp"

namespace fl {

template <class T>
class RowSums {
 public:
  // `pool` must outlive this object.
  explicit RowSums(ThreadPool& pool);
  ~RowSums();

  // Adds the rows. rows: [K,P] in `memory`, which is host or managed memory, with row numbers in host memory; factor: [K]; sum: [P] in
  // host memory, complete on return.
  void add(Device memory, BatchView<const T> rows, std::span<const double> factor, std::span<double> sum);

 private:
  struct OnDevice;
  ThreadPool& pool_;
  std::unique_ptr<OnDevice> device_;  // created for the first rows on a GPU
};

extern template class RowSums<float>;
extern template class RowSums<double>;

}  // namespace fl
