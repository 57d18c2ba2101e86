// Copies a few numbers between an operator's device and the host, which decides with them: per-client state and sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {

// Copies the first n numbers of every row to `numbers` [K,n].
template <class T>
struct ReadRows {
  BatchView<const T> from;
  std::size_t n;
  T* numbers;
  FL_HD void operator()(std::size_t i) const { numbers[i] = from.row(i / n)[i % n]; }
};
template <class T>
struct WriteRows {
  const T* numbers;
  std::size_t n;
  BatchView<T> to;
  FL_HD void operator()(std::size_t i) const { to.row(i / n)[i % n] = numbers[i]; }
};

// Writes a vector to row k.
template <class T>
struct WriteRow {
  const T* from;
  BatchView<T> to;
  std::size_t k;
  FL_HD void operator()(std::size_t j) const { to.row(k)[j] = from[j]; }
};

// Copies numbers from the device to the host and waits for the copy.
template <class U>
[[nodiscard]] std::vector<U> on_host(const Exec& exec, const U* from, std::size_t count) {
  std::vector<U> values(count);
  copy_bytes(values.data(), Device::cpu, from, kThisDevice, count * sizeof(U), exec.stream);
  return values;
}
// Copies numbers from the host to memory that functors can read. The copy lives as long as the frame.
template <class U>
[[nodiscard]] const U* on_device(const Exec& exec, const std::vector<U>& values, Workspace::Frame& frame) {
  U* placed = frame.take<U>(values.size());
  copy_bytes(placed, kThisDevice, values.data(), Device::cpu, values.size() * sizeof(U), exec.stream);
  return placed;
}

// The operator's state of K clients, n numbers each, on the host. One copy transfers all of it.
template <class T>
class RememberedNumbers {
 public:
  RememberedNumbers(const Exec& exec, const BatchView<const T>& rows, std::size_t n) : n_(n) {
    Workspace::Frame frame(*exec.workspace);
    T* numbers = frame.take<T>(rows.K * n);
    for_each(exec, rows.K * n, ReadRows<T>{rows, n, numbers});
    numbers_ = on_host<T>(exec, numbers, rows.K * n);
  }
  [[nodiscard]] std::vector<T> of(std::size_t k) const {
    const auto begin = numbers_.begin() + static_cast<std::ptrdiff_t>(k * n_);
    return {begin, begin + static_cast<std::ptrdiff_t>(n_)};
  }
  void set(std::size_t k, const std::vector<T>& values) {
    std::copy(values.begin(), values.end(), numbers_.begin() + static_cast<std::ptrdiff_t>(k * n_));
  }
  void write(const Exec& exec, const BatchView<T>& rows) const {
    Workspace::Frame frame(*exec.workspace);
    for_each(exec, numbers_.size(), WriteRows<T>{on_device(exec, numbers_, frame), n_, rows});
  }

 private:
  std::size_t n_;
  std::vector<T> numbers_;  // [K,n]
};

}  // namespace fl::FL_DEVICE_NS
