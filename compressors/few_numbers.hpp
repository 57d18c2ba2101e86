// A few numbers between the device of an operator and the host that decides something with them: what is remembered of a client, sums.
#pragma once

#include <cstddef>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/buffer.hpp"
#include "fl_core/verbs.hpp"
#include "fl_core/workspace.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
struct ReadRow {
  BatchView<const T> from;
  std::size_t k;
  T* to;
  FL_HD void operator()(std::size_t j) const { to[j] = from.row(k)[j]; }
};
template <class T>
struct WriteRow {
  const T* from;
  BatchView<T> to;
  std::size_t k;
  FL_HD void operator()(std::size_t j) const { to.row(k)[j] = from[j]; }
};

// Numbers of the device, on the host. Waits for them.
template <class U>
[[nodiscard]] std::vector<U> on_host(const Exec& exec, const U* from, std::size_t count) {
  std::vector<U> values(count);
  copy_bytes(values.data(), Device::cpu, from, kThisDevice, count * sizeof(U), exec.stream);
  return values;
}
// Numbers of the host where functors can read them; they live as long as the frame.
template <class U>
[[nodiscard]] const U* on_device(const Exec& exec, const std::vector<U>& values, Workspace::Frame& frame) {
  U* placed = frame.take<U>(values.size());
  copy_bytes(placed, kThisDevice, values.data(), Device::cpu, values.size() * sizeof(U), exec.stream);
  return placed;
}

// The first `count` numbers of row k, on the host.
template <class T>
[[nodiscard]] std::vector<T> read_row(const Exec& exec, const BatchView<const T>& rows, std::size_t k, std::size_t count) {
  Workspace::Frame frame(*exec.workspace);
  T* row = frame.take<T>(count);
  for_each(exec, count, ReadRow<T>{rows, k, row});
  return on_host<T>(exec, row, count);
}
template <class T>
void write_row(const Exec& exec, const std::vector<T>& values, const BatchView<T>& rows, std::size_t k) {
  Workspace::Frame frame(*exec.workspace);
  for_each(exec, values.size(), WriteRow<T>{on_device(exec, values, frame), rows, k});
}

}  // namespace fl::FL_DEVICE_NS
