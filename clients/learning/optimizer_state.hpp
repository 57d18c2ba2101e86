// The vectors of a local optimizer while a client works: scratch memory that begins at zero, or rows of client slots.
//
// A client's slots are "local_optimizer.0", ... [P], one for each vector of the rule, and "local_optimizer.steps", its number of steps.
// They are double-buffered: the work of a round writes the shadow rows, which become the client's state when its message was delivered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clients/learning/local_optimizer.hpp"
#include "clients/learning/oracle.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/round/round_views.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

// A client's number of steps in a slot of two numbers, which are exact in float up to 2^40: count / 2^16 and the rest.
inline constexpr std::size_t kStepCountLength = 2;
template <class T>
[[nodiscard]] std::uint64_t read_step_count(const T* row) {
  return static_cast<std::uint64_t>(row[0]) * 65536 + static_cast<std::uint64_t>(row[1]);
}
template <class T>
void write_step_count(std::uint64_t count, T* row) {
  row[0] = static_cast<T>(count / 65536);
  row[1] = static_cast<T>(count % 65536);
}

// Returns the slots in which clients keep the rule's vectors, none if these last for a round.
template <class T>
[[nodiscard]] FL_API std::vector<SlotSpec> optimizer_slots(const LocalOptimizer<T>& rule);

// The rows of a block's clients in those slots.
template <class T>
struct KeptStates {
  std::vector<BatchView<T>> stored, shadow;  // by vector: [K,P]
  BatchView<T> stored_count, shadow_count;   // [K,2]
  [[nodiscard]] bool empty() const { return stored_count.data == nullptr; }
};
// Returns the rows; empty if the rule is null or its vectors last for a round.
template <class T>
[[nodiscard]] FL_API KeptStates<T> kept_states(const LocalOptimizer<T>* rule, const ClientRound<T>& round, const ClientBlock<T>& block);

// The optimizer of one client on the CPU, during its work of a round.
template <class T>
class FL_API ClientOptimizer {
 public:
  // Uses memory of the frame as long as it lives, and the oracle's model.
  ClientOptimizer(const LocalOptimizer<T>& rule, const GradientOracle<T>& oracle, const ClientRound<T>& round, const ClientBlock<T>& block,
                  std::uint32_t k, Workspace::Frame& frame);
  // Moves y [P] by a step along g [P], which becomes scratch memory and is 0 at running averages. These stay as they are in y.
  void step(const Exec& exec, double gamma, const T* w, T* g, T* y);

 private:
  const LocalOptimizer<T>& rule_;
  const LayerTable layers_;
  std::span<const ParameterRange> averages_;
  std::size_t P_;
  std::vector<BatchView<T>> states_;
  std::uint64_t count_ = 0;
  T* kept_count_ = nullptr;  // [2] in the shadow row, or null
  T* own_averages_;          // [S]
};

extern template class ClientOptimizer<float>;
extern template class ClientOptimizer<double>;

}  // namespace fl
