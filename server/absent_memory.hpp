// The server's part of the absence rule (fl_core/round/absence_rule.hpp): the round of each client's last message, and the cost of
// absence.
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
      : rule_(std::move(rule)), sent_(P - rule_.unshared), last_received_(num_clients, 0) {}

  // Charges the returning members of a cohort for the memory that they receive.
  void charge_returning(std::uint32_t round, std::span<const std::uint32_t> cohort, Ledger& ledger) const;
  // Records the clients whose messages the round delivered.
  void receive(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const std::uint8_t> delivered);
  // Computes the mean of the cohort's memories after a round has closed, if the rule is `server`. Members send their memories and are
  // charged for them; those whose memory does not arrive in time do not count.
  void learn(std::span<const std::uint32_t> cohort, CohortRunner<T>& clients, ServerState<T>& state, Ledger& ledger) const;

  // Returns the mean memory [P] that returning clients receive, or an empty vector if the rule does not replace memories.
  [[nodiscard]] std::vector<T> replacement(ServerState<T>& state) const;
  // Returns the mean number of rounds since the last message, over the cohort's members with an earlier message; NaN if there is none.
  [[nodiscard]] double residual_age(std::uint32_t round, std::span<const std::uint32_t> cohort) const;
  [[nodiscard]] const AbsenceRule& rule() const { return rule_; }
  // Returns, by client, the round of its last message that arrived; 0 = none.
  [[nodiscard]] std::span<const std::uint32_t> last_received() const { return last_received_; }

  void persist(Archive& archive);

 private:
  AbsenceRule rule_;
  std::size_t sent_;  // entries of a memory that are sent
  std::vector<std::uint32_t> last_received_;
};

extern template class AbsentMemory<float>;
extern template class AbsentMemory<double>;

}  // namespace fl
