// sum_i w_i e_i over all clients, where e_i is the error memory with which client i would begin the next round. The sum is a measure; no
// message contains it.
//
// The scenario alone chooses one of two methods, so that results never depend on the machine:
//   whole    sums over all clients that ever took part, whenever the value is requested: N vectors at a time
//   running  is kept up to date: before a round, the cohort's memories are subtracted and the rule for absent clients ages the rest. After
//            the round, the new memories are added: 2 M vectors in every round
// The cheaper method is chosen: running if 2 M every < N, for cohorts of M and an evaluation after every `every` rounds. The cost of a
// round therefore does not grow with N, and absent clients' memory is not moved.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clients/host/absence.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/row_sums.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

template <class T>
class MemorySum {
 public:
  // All arguments outlive it. `weights` are w_i [N].
  MemorySum(const Absence<T>& absence, std::span<const double> weights, bool is_running, ClientState<T>& clients, ThreadPool& pool);

  [[nodiscard]] static bool pays_to_run(std::size_t num_clients, std::size_t cohort, std::uint64_t every) {
    return 2 * static_cast<double>(cohort) * static_cast<double>(every) < static_cast<double>(num_clients);
  }

  // Subtracts the cohort's memory. Call before it is settled; a skipped round has an empty cohort.
  void begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort);
  // Adds the cohort's new memory. Call after its messages were acknowledged.
  void end_round(std::span<const std::uint32_t> cohort);
  // Returns the sum [P] at the beginning of `round`. `replacement` [P] is the server's mean memory, if the rule replaces.
  [[nodiscard]] std::vector<double> value(std::uint32_t round, std::span<const double> replacement) const;

  [[nodiscard]] std::size_t size_bytes() const { return running_.size() * sizeof(double); }
  void persist(Archive& archive);

 private:
  // sum += sign sum_i w_i (the memory that client i keeps when it begins `round`; all of its memory if `round` is 0)
  void add(std::uint32_t round, std::span<const std::uint32_t> members, double sign, std::span<double> sum) const;

  const Absence<T>& absence_;
  std::span<const double> weights_;
  bool is_running_;
  ClientState<T>& clients_;
  std::unique_ptr<RowSums<T>> rows_;
  std::vector<double> running_;  // [P] if the method is running
};

extern template class MemorySum<float>;
extern template class MemorySum<double>;

}  // namespace fl
