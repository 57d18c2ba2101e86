// The messages of a phase that count: those that the run's delivery waits for.
#include <algorithm>
#include <limits>

#include "net/server/remote_cohort.hpp"

namespace fl::net {

// Clients that were absent in an earlier phase are not waited for.
template <class T>
typename RemoteCohort<T>::Decision RemoteCohort<T>::decide(int stage, const Completions& completed) const {
  std::vector<double> arrival_s;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < open_.cohort.size(); ++i) {
    if (open_.is_absent[i] != 0) continue;
    positions.push_back(i);
    arrival_s.push_back(completed[i] ? open_.timer.seconds_at(*completed[i], stage) : std::numeric_limits<double>::infinity());
  }
  Decision decision{.closes_at = {}, .counts = std::vector<std::uint8_t>(open_.cohort.size(), 0)};
  if (positions.empty()) return decision;
  const std::size_t awaited = request_.cohort.awaited == 0 ? positions.size() : std::min(request_.cohort.awaited, positions.size());
  std::vector<std::uint8_t> counts(positions.size(), 0);
  decision.closes_at = open_.timer.time_of(request_.delivery.decide(arrival_s, awaited, counts), stage);
  for (std::size_t k = 0; k < positions.size(); ++k) decision.counts[positions[k]] = counts[k];
  return decision;
}

// A message that came and does not count is treated as one that did not come in time.
template <class T>
Answers RemoteCohort<T>::collect_phase(int phase) const {
  const int stage = phase + 1;
  Wait wait = wait_until_stage(stage);
  if (request_.delivery.waits_for_all()) return peers_.collect(wait, goes_on_);
  wait.closes_at = [this, stage](const Completions& completed) { return decide(stage, completed).closes_at; };
  Answers answers = peers_.collect(wait, goes_on_);
  const std::vector<std::uint8_t> counts = decide(stage, answers.completed).counts;
  for (std::size_t f = 0; f < answers.arrived.size(); ++f)
    if (counts[f % counts.size()] == 0) answers.arrived[f] = 0;
  return answers;
}

template typename RemoteCohort<float>::Decision RemoteCohort<float>::decide(int, const Completions&) const;
template typename RemoteCohort<double>::Decision RemoteCohort<double>::decide(int, const Completions&) const;
template Answers RemoteCohort<float>::collect_phase(int) const;
template Answers RemoteCohort<double>::collect_phase(int) const;

}  // namespace fl::net
