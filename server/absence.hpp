// What becomes of the error memory of clients that missed rounds, settled when they come back.
//
//   keep    e stays                            decay   e <- factor^missed e          drop   e <- 0
//   server  e <- the mean memory of the cohort before: each member sends its memory, dense, when its round ends, and each client that
//           comes back is sent the mean; both are counted
// Missed rounds are those since the client's last acknowledged message, skipped rounds included; a client that never took part has nothing
// to settle. Only the error memory is touched: state that the server holds a copy of must stay as it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/client_state.hpp"
#include "fl_core/ledger.hpp"
#include "fl_core/run_settings.hpp"
#include "fl_core/server_state.hpp"

namespace fl {

struct AbsenceRule {
  AbsentState state = AbsentState::keep;
  double decay = 1;            // factor per missed round
  std::string slot;            // the client slot of the error memory; "" = none
  std::size_t statistics = 0;  // entries of a memory that are running statistics: always 0, so nobody sends them
};

template <class T>
class Absence {
 public:
  explicit Absence(AbsenceRule rule) : rule_(std::move(rule)) {}

  // The server slot that holds the mean memory, "" = none is needed.
  [[nodiscard]] static std::string mean_slot(const AbsenceRule& rule) { return rule.state == AbsentState::server ? "absent_mean" : ""; }

  // At the beginning of a round, for its cohort.
  void settle(std::uint32_t round, std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state,
              Ledger& ledger) const;
  // At its end.
  void learn(std::span<const std::uint32_t> cohort, ClientState<T>& clients, ServerState<T>& state, Ledger& ledger) const;

  [[nodiscard]] const std::string& slot() const { return rule_.slot; }
  // The share of its memory that a client keeps when it begins `round`, and what one more missed round leaves of that.
  [[nodiscard]] double kept_share(std::uint32_t round, std::uint32_t client, const ClientState<T>& clients) const;
  [[nodiscard]] double factor_of_a_round() const { return factor(1); }
  // Whether something else takes the place of memory.
  [[nodiscard]] bool replaces() const { return rule_.state == AbsentState::server; }
  // sum [P] += what replaces the memory of all clients that would be back in `round`, weighted.
  void add_replacements(std::uint32_t round, std::span<const double> weights, ClientState<T>& clients, ServerState<T>& state,
                        std::span<double> sum) const;
  // sum [P] += weight * (the memory that a client would begin `round` with).
  void add_memory(std::uint32_t round, std::uint32_t client, double weight, ClientState<T>& clients, ServerState<T>& state,
                  std::span<double> sum) const;

  // Mean over the cohort's members that have an acknowledged message of the rounds since then; NaN when none has.
  [[nodiscard]] static double residual_age(std::uint32_t round, std::span<const std::uint32_t> cohort, const ClientState<T>& clients);

 private:
  [[nodiscard]] double factor(std::uint32_t missed) const;
  AbsenceRule rule_;
};

extern template class Absence<float>;
extern template class Absence<double>;

}  // namespace fl
