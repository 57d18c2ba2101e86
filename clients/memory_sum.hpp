// sum_i w_i e_i over all clients, where e_i is the error memory that client i would begin the next round with: a measure, which nobody
// sends.
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
#include <vector>

#include "clients/absence.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/row_sums.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

template <class T>
class MemorySum {
 public:
  // All outlive it. `weights` are w_i [N].
  MemorySum(const Absence<T>& absence, std::span<const double> weights, bool is_running, ClientState<T>& clients, ThreadPool& pool);

  [[nodiscard]] static bool pays_to_run(std::size_t num_clients, std::size_t cohort, std::uint64_t every) {
    return 2 * static_cast<double>(cohort) * static_cast<double>(every) < static_cast<double>(num_clients);
  }

  // Before the cohort's memory is settled; a skipped round has an empty cohort.
  void begin_round(std::uint32_t round, std::span<const std::uint32_t> cohort);
  // After the cohort's messages were acknowledged.
  void end_round(std::span<const std::uint32_t> cohort);
  // At the beginning of `round`: [P]. `replacement` [P] is the server's mean memory, where the rule replaces.
  [[nodiscard]] std::vector<double> value(std::uint32_t round, std::span<const double> replacement) const;

  [[nodiscard]] std::size_t size_bytes() const { return running_.size() * sizeof(double); }
  void persist(Archive& archive);

 private:
  // sum += sign sum_i w_i (what client i keeps of its memory when it begins `round`; of all where that is 0)
  void add(std::uint32_t round, std::span<const std::uint32_t> members, double sign, std::span<double> sum) const;

  const Absence<T>& absence_;
  std::span<const double> weights_;
  bool is_running_;
  ClientState<T>& clients_;
  std::unique_ptr<RowSums<T>> rows_;
  std::vector<double> running_;  // [P] where it runs
};

extern template class MemorySum<float>;
extern template class MemorySum<double>;

}  // namespace fl
