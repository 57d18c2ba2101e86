#include "scenarios/experiment/calibration.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "scenarios/experiment/experiment.hpp"
#include "scenarios/experiment/stated_work.hpp"

namespace fl {

namespace {

constexpr double kSlices = 9;          // stretches of the time for one kind of rounds
constexpr std::size_t kFewSlices = 5;  // with fewer slices a median means little

double now_s(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Rounds that measure the same things.
struct KindOfRound {
  bool evaluated = false, measured = false;
  std::uint64_t count = 0;
};

// Returns the kinds of rounds, rarest first, so that each kind gets its rounds. Evaluations and message measures are due at multiples of
// their interval and in the last round.
std::array<KindOfRound, 4> kinds_of(std::uint64_t total, std::int64_t evaluate_every, std::int64_t measure_every) {
  const auto times = [total](std::uint64_t every) { return total / every + (total % every != 0 ? 1 : 0); };
  const std::uint64_t evaluate = std::min(total, static_cast<std::uint64_t>(evaluate_every)),
                      measure = std::min(total, static_cast<std::uint64_t>(measure_every));
  const std::uint64_t both = times(std::min(total, std::lcm(evaluate, measure)));
  std::array<KindOfRound, 4> kinds{{{false, false, total + both - times(evaluate) - times(measure)},
                                    {false, true, times(measure) - both},
                                    {true, false, times(evaluate) - both},
                                    {true, true, both}}};
  std::ranges::sort(kinds, {}, &KindOfRound::count);
  return kinds;
}

// Predicts the bits of the whole run: the bits sent so far, plus the mean of the latter half for the remaining rounds. The first rounds are
// left out of that mean because clients may send everything in them.
void predict_bits(const std::vector<RoundBits>& played, Calibration& found) {
  RoundBits sent{}, late{};
  const std::size_t half = played.size() / 2;
  for (std::size_t r = 0; r < played.size(); ++r) {
    sent = {sent.up + played[r].up, sent.down + played[r].down};
    if (r >= half) late = {late.up + played[r].up, late.down + played[r].down};
  }
  const double left = static_cast<double>(found.total_rounds - played.size()) / static_cast<double>(played.size() - half);
  found.bits_up = static_cast<double>(sent.up) + left * static_cast<double>(late.up);
  found.bits_down = static_cast<double>(sent.down) + left * static_cast<double>(late.down);
}

}  // namespace

void Stopwatch::restart() {
  clock_ = now_s(CLOCK_MONOTONIC);
  processor_ = now_s(CLOCK_PROCESS_CPUTIME_ID);
}
double Stopwatch::seconds() const { return std::min(now_s(CLOCK_MONOTONIC) - clock_, now_s(CLOCK_PROCESS_CPUTIME_ID) - processor_); }

// Plays rounds of one kind for about `seconds`, until at most `most` rounds are played in total or goes_on() says no. Returns the seconds
// per round. Rounds may differ (a coin may make a client send everything), so each slice holds many rounds if time permits.
template <class T>
double Experiment<T>::seconds_per_round(const DueMeasures& due, double seconds, std::size_t most, const std::function<bool()>& goes_on,
                                        std::vector<RoundBits>& played) {
  const auto lasts = [&goes_on](const Stopwatch& watch, double most_s) { return watch.seconds() < most_s && (!goes_on || goes_on()); };
  std::vector<double> slices;
  const Stopwatch all;
  while (played.size() < most && (slices.empty() || lasts(all, seconds))) {
    const Stopwatch slice;
    std::uint32_t rounds = 0;
    for (; played.size() < most && (rounds == 0 || lasts(slice, seconds / kSlices)); ++rounds) {
      const RoundRow row = play(static_cast<std::uint32_t>(played.size()) + 1, due);
      (void)why_diverged(row);
      played.push_back({row.bits_up, row.bits_down});
    }
    slices.push_back(slice.seconds() / rounds);
  }
  return slices.size() < kFewSlices ? mean(slices) : median(std::move(slices));
}

// Returns the total seconds of measures with an interval of their own: each is taken once at the current model and counted as often as the
// run takes it.
template <class T>
double Experiment<T>::seconds_of_rare_measures() {
  const auto total = static_cast<std::uint64_t>(scenario_.rounds);
  double all_s = 0;
  const auto add = [&](std::int64_t every, const auto& measure) {
    if (every <= 0) return;
    const auto step = std::min(total, static_cast<std::uint64_t>(every));
    const Stopwatch one;
    RoundRow row;
    measure(row);
    const std::uint64_t times = total / step + (total % step != 0 ? 1 : 0);
    all_s += one.seconds() * static_cast<double>(times);
  };
  for (const auto& rare : measuring_.set.rare()) add(rare.every, [&](RoundRow& row) { measuring_.run->measure(row, rare.measure); });
  return all_s;
}

// Returns the seconds of something that happens in every round that is evaluated, from the median of three times.
template <class T>
template <class F>
double Experiment<T>::seconds_in_evaluated_rounds(const F& evaluate) {
  constexpr int kTimes = 3;
  std::vector<double> one_s;
  for (int i = 0; i < kTimes; ++i) {
    const Stopwatch one;
    evaluate();
    one_s.push_back(one.seconds());
  }
  const auto total = static_cast<std::uint64_t>(scenario_.rounds), every = static_cast<std::uint64_t>(scenario_.evaluate.every);
  const std::uint64_t times = total / every + (total % every != 0 ? 1 : 0);
  return median(std::move(one_s)) * static_cast<double>(times);
}

// Returns the seconds that all rounds together spend on the test set.
template <class T>
double Experiment<T>::seconds_of_test_set() {
  if (!scenario_.evaluate.test_set || problem_.test() == nullptr) return 0;
  return seconds_in_evaluated_rounds([this] { (void)measuring_.evaluator.test(model_.span()); });
}

// Returns the seconds that all rounds together spend on the training loss, where it has a pass of its own.
template <class T>
double Experiment<T>::seconds_of_losses() {
  const bool is_measured = scenario_.evaluate.train_loss && measuring_.evaluator.knows_loss();
  if (!is_measured || measuring_.set.needs(measuring_.set.due_with(true, false), &MeasureCost::gradients)) return 0;
  return seconds_in_evaluated_rounds([this] { (void)measuring_.evaluator.train_loss(model_.span()); });
}

template <class T>
Calibration Experiment<T>::calibrate(double seconds, const std::function<bool()>& goes_on) {
  const auto total = static_cast<std::size_t>(scenario_.rounds);
  Calibration found;
  found.total_rounds = total;
  const std::array<KindOfRound, 4> kinds = kinds_of(total, scenario_.evaluate.every, measuring_.schedule.messages_every());
  const auto used = static_cast<double>(std::ranges::count_if(kinds, [](const KindOfRound& kind) { return kind.count > 0; }));

  const Stopwatch start;
  (void)row_of_start();
  found.once_s = start.seconds();
  std::vector<RoundBits> played;
  const double first_s = seconds_per_round(measuring_.set.due_with(false, false), 0, 1, goes_on, played);
  double least_s = first_s;
  for (const KindOfRound& kind : kinds) {
    if (kind.count == 0) continue;
    const std::size_t most = std::min(total, played.size() + kind.count);
    const DueMeasures due = measuring_.set.due_with(kind.evaluated, kind.measured);
    const double one_s = played.size() < most ? seconds_per_round(due, seconds / used, most, goes_on, played) : first_s;
    found.rounds_s += static_cast<double>(kind.count) * one_s;
    least_s = std::min(least_s, one_s);
  }
  found.rounds_s += seconds_of_rare_measures();
  found.test_set_s = seconds_of_test_set();
  found.losses_s = seconds_of_losses();
  found.once_s += first_s - least_s;  // the first round touches its memory for the first time
  if (std::isfinite(path_.f_star)) {
    const Stopwatch end;
    (void)measuring_.run->zeta_sq_at_optimum();
    found.once_s += end.seconds();
  }
  found.rounds_played = played.size();
  predict_bits(played, found);
  found.growth_bytes = growth_bytes();
  const double messages =
      static_cast<double>(total) * static_cast<double>(std::max<std::size_t>(sides_.server.round->plan().cohort.size(), 1));
  found.tiers = tier_seconds(scenario_, problem_, method_, {.up = found.bits_up / messages, .down = found.bits_down / messages});
  found.too_late_s = too_late_s(found.bits_up / messages, found.bits_down / messages);
  return found;
}

// Asks the delivery policy about a round of all clients, with messages of these bits. Returns the seconds until the first of them arrives
// if none counts, else 0.
template <class T>
double Experiment<T>::too_late_s(double up_bits, double down_bits) const {
  if (!sides_.clock || scenario_.is_asynchronous()) return 0;
  const RoundClock& clock = *sides_.clock->clock;
  std::vector<double> arrival_s;
  for (std::uint32_t client = 0; client < run_.num_clients; ++client) {
    const LoneMessage message = clock.alone(client, 1, static_cast<std::uint64_t>(down_bits), static_cast<std::uint64_t>(up_bits));
    arrival_s.push_back(message.arrives ? message.ends_s - clock.now_s() : std::numeric_limits<double>::infinity());
  }
  std::vector<std::uint8_t> counts(arrival_s.size());
  static_cast<void>(sides_.server.parts.delivery->decide(arrival_s, arrival_s.size(), counts));
  return std::ranges::find(counts, std::uint8_t{1}) != counts.end() ? 0 : std::ranges::min(arrival_s);
}

// Returns the growth of memory: state of clients that have not taken part yet, within its limit, and the result rows, which are kept,
// packed and sent.
template <class T>
std::uint64_t Experiment<T>::growth_bytes() const {
  const auto total = static_cast<std::uint64_t>(scenario_.rounds);
  return sides_.simulated->growth_bytes(static_cast<double>(total) * static_cast<double>(sides_.server.round->plan().cohort.size())) +
         3 * total * (sizeof(RoundRow) + measuring_.set.columns().size() * sizeof(double));
}

// Instantiates the members defined in this file; the other files instantiate theirs.
template Calibration Experiment<float>::calibrate(double, const std::function<bool()>&);
template Calibration Experiment<double>::calibrate(double, const std::function<bool()>&);
template double Experiment<float>::seconds_per_round(const DueMeasures&, double, std::size_t, const std::function<bool()>&,
                                                     std::vector<RoundBits>&);
template double Experiment<double>::seconds_per_round(const DueMeasures&, double, std::size_t, const std::function<bool()>&,
                                                      std::vector<RoundBits>&);
template double Experiment<float>::seconds_of_rare_measures();
template double Experiment<double>::seconds_of_rare_measures();
template double Experiment<float>::seconds_of_test_set();
template double Experiment<double>::seconds_of_test_set();
template double Experiment<float>::seconds_of_losses();
template double Experiment<double>::seconds_of_losses();
template double Experiment<float>::too_late_s(double, double) const;
template double Experiment<double>::too_late_s(double, double) const;
template std::uint64_t Experiment<float>::growth_bytes() const;
template std::uint64_t Experiment<double>::growth_bytes() const;

}  // namespace fl
