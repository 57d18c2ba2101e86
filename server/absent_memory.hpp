// The server's half of absence (fl_core/round/absence_rule.hpp): the round of each client's last message, and what absence costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/message/ledger.hpp"
#include "fl_core/round/absence_rule.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/state/archive.hpp"
#include "fl_core/state/server_state.hpp"

namespace fl {

template <class T>
class AbsentMemory {
 public:
  AbsentMemory(AbsenceRule rule, std::size_t num_clients, std::size_t P)
      : rule_(std::move(rule)), sent_(P - rule_.statistics), last_received_(num_clients, 0) {}

  // Charges the members of a cohort that come back for the memory that they are sent.
  void charge_returning(std::uint32_t round, std::span<const std::uint32_t> cohort, Ledger& ledger) const;
  // Notes whose messages a round delivered.
  void receive(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const std::uint8_t> delivered);
  // Takes the mean of the cohort's memories when a round has closed, which its members send and pay for, where the rule replaces.
  void learn(std::span<const std::uint32_t> cohort, CohortRunner<T>& clients, ServerState<T>& state, Ledger& ledger) const;

  // Returns the mean memory [P] as clients that come back are sent it; empty where the rule does not replace.
  [[nodiscard]] std::vector<T> replacement(ServerState<T>& state) const;
  // Returns the mean, over the cohort's members whose messages arrived before, of the rounds since then; NaN when none was.
  [[nodiscard]] double residual_age(std::uint32_t round, std::span<const std::uint32_t> cohort) const;
  [[nodiscard]] const AbsenceRule& rule() const { return rule_; }
  // By client: the round of its last message that arrived; 0 = none.
  [[nodiscard]] std::span<const std::uint32_t> last_received() const { return last_received_; }

  void persist(Archive& archive);

 private:
  AbsenceRule rule_;
  std::size_t sent_;  // entries of a memory that travel
  std::vector<std::uint32_t> last_received_;
};

extern template class AbsentMemory<float>;
extern template class AbsentMemory<double>;

}  // namespace fl
