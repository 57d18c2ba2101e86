// The error memories of all clients as a server sees them that is sent each: for the measure of their sum, which is the simulated one.
#pragma once

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "clients/host/absence.hpp"
#include "clients/host/memory_sum.hpp"
#include "scenarios/experiment/run_clients.hpp"

namespace fl::net {

template <class T>
class ErrorMirror {
 public:
  // `rule` names the slot of the error memory. What the request names outlives it.
  ErrorMirror(const AbsenceRule& rule, const ClientRequest<T>& request)
      : slot_(rule.slot),
        state_(request.run.num_clients, request.cohort.most, request.run.P),
        absence_(rule),
        sum_(absence_, request.run.weights,
             MemorySum<T>::pays_to_run(request.run.num_clients, request.cohort.likely,
                                       static_cast<std::uint64_t>(request.cell.scenario.evaluate.every)),
             state_, request.pool) {
    state_.declare({.name = slot_, .owner = SlotOwner::client});
  }

  // A round opens: clients that come back settle their memory, as they do where they are.
  void open(std::uint32_t round, std::span<const std::uint32_t> cohort, std::span<const T> replacement) {
    cohort_.assign(cohort.begin(), cohort.end());
    state_.open_round(cohort_);
    sum_.begin_round(round, cohort_);
    absence_.settle(round, cohort_, replacement, state_);
  }
  void skip(std::uint32_t round) { sum_.begin_round(round, {}); }
  // The round closes with these memories [M,P]; `delivered` [M] says whose messages counted. A memory that has not arrived is empty: the
  // sum is not known until its client sends it in a later round.
  void close(std::uint32_t round, const std::vector<std::vector<T>>& memories, std::span<const std::uint8_t> delivered) {
    for (std::uint32_t i = 0; i < cohort_.size(); ++i) {
      std::ranges::copy(memories[i], state_.stored(slot_, i, 1).row(0));
      if (memories[i].empty())
        unknown_.insert(cohort_[i]);
      else
        unknown_.erase(cohort_[i]);
      if (delivered[i] != 0) state_.set_acknowledged(cohort_[i], round);
    }
    sum_.end_round(cohort_);
  }
  // Returns sum_i w_i e_i [P] at the beginning of `round`, as ClientProbe::error_memory_sum.
  [[nodiscard]] std::vector<double> value(std::uint32_t round, std::span<const double> replacement) const {
    std::vector<double> sum = sum_.value(round, replacement);
    if (!unknown_.empty()) std::ranges::fill(sum, std::numeric_limits<double>::quiet_NaN());
    return sum;
  }
  void persist(Archive& archive) {
    std::vector<std::uint32_t> unknown(unknown_.begin(), unknown_.end());
    state_.persist(archive);
    sum_.persist(archive);
    archive.list(unknown);
    unknown_ = {unknown.begin(), unknown.end()};
  }

 private:
  std::string slot_;
  ClientState<T> state_;
  Absence<T> absence_;
  MemorySum<T> sum_;
  std::vector<std::uint32_t> cohort_;  // of the round that is open
  std::set<std::uint32_t> unknown_;    // clients whose memory has not arrived
};

}  // namespace fl::net
