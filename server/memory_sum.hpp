// sum_i w_i e_i over all clients, where e_i is the error memory that client i would begin the next round with.
//
// Two ways, chosen by the scenario alone so that results never depend on the machine:
//   whole    summed over the clients that ever took part when it is asked for: N vectors at a time
//   running  kept up to date: before a round its cohort's memories are taken off, what is left is aged by the rule for absent clients, and
//            after the round the new ones are added: 2 M vectors in every round
// The cheaper one is taken: running where 2 M every < N, for cohorts of M and an evaluation every so many rounds. So the cost of a round
// does not grow with N, and absent clients' memory stays where it is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/row_sums.hpp"
#include "fl_core/thread_pool.hpp"
#include "server/absence.hpp"

namespace fl {

template <class T>
class MemorySum {
 public:
  // All outlive it. `weights` are w_i [N].
  MemorySum(const Absence<T>& absence, std::span<const double> weights, bool is_running, ThreadPool& pool)
      : absence_(absence), weights_(weights), is_running_(is_running), rows_(std::make_unique<RowSums<T>>(pool)) {}

  [[nodiscard]] static bool pays_to_run(std::size_t num_clients, std::size_t cohort, std::uint64_t every) {
    return 2 * static_cast<double>(cohort) * static_cast<double>(every) < static_cast<double>(num_clients);
  }
  // The server slot that the running way needs.
  [[nodiscard]] static std::string slot() { return "memory_sum"; }

  // Before the cohort's memory is settled; a skipped round has an empty cohort.
  void begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state);
  // After the cohort's messages were acknowledged.
  void end_round(std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state);
  // At the beginning of `round`: [P].
  [[nodiscard]] std::vector<double> value(std::uint32_t round, ClientState<T>& clients, ServerState<T>& state) const;

 private:
  // sum += sign sum_i w_i (what client i keeps of its memory when it begins `round`; of all where that is 0)
  void add(std::uint32_t round, std::span<const std::uint32_t> members, double sign, ClientState<T>& clients, std::span<double> sum) const;

  const Absence<T>& absence_;
  std::span<const double> weights_;
  bool is_running_;
  std::unique_ptr<RowSums<T>> rows_;
};

extern template class MemorySum<float>;
extern template class MemorySum<double>;

}  // namespace fl
