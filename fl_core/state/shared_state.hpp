// The state that server and clients have in common: slots of owner `shared`, with a replica in each process.
//
// Clients only read their replica. It changes in three ways: by messages (SlotSync::broadcast, broadcast_at_close, initial), by
// Feedback::derive(), which runs on every replica, and by keep_model(). The server's replica changes in the same ways and by
// Feedback::receive(), whose changes are sent. tests/architecture keeps two replicas in one process and compares their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

template <class T>
class FL_API SharedState {
 public:
  // `memory`: managed if operators run on a GPU.
  explicit SharedState(std::size_t P, Device memory = Device::cpu) : P_(P), memory_(memory) {}

  void declare(const SlotSpec& spec);
  // Throw Error for an undeclared name.
  [[nodiscard]] std::span<T> slot(const std::string& name);
  [[nodiscard]] std::span<const T> slot(const std::string& name) const;
  [[nodiscard]] const std::vector<SlotSpec>& specs() const { return specs_; }
  [[nodiscard]] std::size_t length_of(const SlotSpec& spec) const { return spec.length == 0 ? P_ : spec.length; }

  // Copies the model of the closing round to the slots with SlotSync::last_model.
  void keep_model(std::span<const T> reference);

  void persist(Archive& archive);
  [[nodiscard]] std::uint64_t size_bytes() const;

 private:
  std::size_t P_;
  Device memory_;
  std::vector<SlotSpec> specs_;
  std::map<std::string, Buffer<T>> slots_;
};

extern template class SharedState<float>;
extern template class SharedState<double>;

}  // namespace fl
