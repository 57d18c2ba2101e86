// The clients' side of absence (fl_core/round/absence_rule.hpp): their error memory when they return after missed rounds.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fl_core/round/absence_rule.hpp"
#include "fl_core/state/client_state.hpp"

namespace fl {

template <class T>
class Absence {
 public:
  explicit Absence(AbsenceRule rule) : rule_(std::move(rule)) {}

  // Settles the error memory of a round's cohort when the round opens. `replacement` [P] is sent to returning clients if the rule replaces.
  void settle(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const T> replacement, ClientState<T>& clients) const;

  [[nodiscard]] const AbsenceRule& rule() const { return rule_; }
  // Returns the share of its memory that a client keeps when it begins `round`.
  [[nodiscard]] double kept_share(std::uint32_t round, std::uint32_t client, const ClientState<T>& clients) const;
  // Adds to sum [P], weighted, the memory with which a client would begin `round`. `replacement` [P] is the server's.
  void add_memory(std::uint32_t round, std::uint32_t client, double weight, std::span<const double> replacement, ClientState<T>& clients,
                  std::span<double> sum) const;
  // Adds to sum [P], weighted, the replacement memory of all clients that return in `round`.
  void add_replacements(std::uint32_t round, std::span<const double> weights, std::span<const double> replacement,
                        const ClientState<T>& clients, std::span<double> sum) const;

 private:
  AbsenceRule rule_;
};

extern template class Absence<float>;
extern template class Absence<double>;

}  // namespace fl
