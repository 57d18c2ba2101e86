// The rules by which a server accepts the norms that a peer states for a client's message (docs/protocol.md, "Measures").
//
//   each of |e|^2, |g|^2, |p|^2, |C(p) - p|^2   is a number, at least 0 and at most most_reported<T>(P), where the method has it
//   the message                                 |C(p)| <= |p| + |C(p) - p|,  where the server can read C(p) from the message alone
// Norms that break a rule are left out of the row's measures, and counted by their reason; the message counts all the same. A client whose
// model has diverged states such norms honestly: if at least half of a cohort do, they are taken as they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "fl_core/round/client_measures.hpp"
#include "scenarios/experiment/run_clients.hpp"

namespace fl::net {

// Returns the largest squared norm of P numbers of T, or sum over a client's rows, that a server takes from a peer. Such numbers of 2^32
// clients have a finite sum.
template <class T>
[[nodiscard]] double most_reported(std::size_t P) {
  constexpr double kNumber = std::numeric_limits<T>::max(), kMost = std::numeric_limits<double>::max() * 0x1p-32;
  return std::min(kMost, static_cast<double>(P) * kNumber * kNumber);
}

// Returns whether |a| <= |b| + |c| up to the rounding of norms of P numbers of T. True if one of them is not a number.
template <class T>
[[nodiscard]] bool is_possible_sum(double a, double b, double c, std::size_t P) {
  const double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon()) + static_cast<double>(P) * 0x1p-52;
  constexpr double kUnderflow = 1e-140;  // squares of smaller numbers are 0
  return !(a > (b + c) * (1 + rounding) + kUnderflow * std::sqrt(static_cast<double>(P)));
}

// The placeholder of norms that are left out: |p|^2 is negative, and measures of messages skip such a client.
inline constexpr ClientMeasures kLeftOutNorms{-1, -1, -1, -1};

// The norms of one client in one round, as its peer states them.
struct StatedNorms {
  ClientMeasures measures;
  OperatorError operator_error;
};

template <class T>
class ReportedNorms {
 public:
  // The request and the objects that it names must outlive this one.
  explicit ReportedNorms(const ClientRequest<T>& request);

  // Replaces the norms of clients that break a rule by kLeftOutNorms and no operator's error. `messages`: [M] of the last phase, `norms`:
  // [M]. Returns the reasons [M], "" = the norms are believed, or the message does not count.
  std::vector<std::string> leave_out(const RoundView<T>& round, int phase, std::span<const ClientMessage<T>> messages,
                                     std::vector<StatedNorms>& norms) const;

 private:
  [[nodiscard]] bool is_in_range(const StatedNorms& norms) const;
  // Returns |C(p)|, or NaN if it cannot be told.
  [[nodiscard]] double length_of(const Exec& exec, const RoundView<T>& round, int phase, const ClientMessage<T>& message) const;

  const ClientRequest<T>& request_;
  const ExchangeChannel<T>* channel_;  // whose messages are measured; null = none
};

extern template class ReportedNorms<float>;
extern template class ReportedNorms<double>;

}  // namespace fl::net
