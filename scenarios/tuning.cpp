#include "scenarios/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "fl_core/checksum.hpp"
#include "fl_core/error.hpp"
#include "scenarios/sweep_runner.hpp"
#include "server/run_store.hpp"

namespace fl {

namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;
constexpr int kMostSteps = 60;
constexpr double kFirstTry = 1e-2;  // where a search begins matters little

// What the tuning seeds of one setting came to.
struct Outcome {
  double measure = 0;  // infinite when a run did not end well
  double bits = 0;
};

// One combination with one value of the tuned key.
struct Candidate {
  Cell cell;                     // first seed
  std::optional<Value> value;    // of the tuned key
  std::optional<Value> matched;  // of the option that matches bits
  Outcome outcome{};
};

// The search for an option's value at which a candidate sends the target's bits: bisection in its logarithm.
struct Search {
  Candidate* candidate = nullptr;
  double target = 0;
  double at = 0;                    // log of the value that is tried
  std::optional<double> few, many;  // logs of values that send too few and too many bits
  double step = std::log(10.0);
  bool settled = false;

  void hear(double bits) {
    const double ratio = bits / target;
    if (std::fabs(ratio - 1) <= kMatchTolerance) {
      settled = true;
      return;
    }
    (ratio > 1 ? many : few) = at;
    // A larger threshold sends less; until both sides are known, further in the direction that is missing.
    if (few && many)
      at = (*few + *many) / 2;
    else
      at += ratio > 1 ? step : -step;
  }
};

// Four digits are enough for 2% and can be read.
double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return std::strtod(text, nullptr);
}

struct Interrupted {};
struct NotStored {};  // a run that is needed, where none may begin

// Labels of the combinations whose bits others are to match.
std::set<Labels> references_of(const std::vector<Cell>& cells) {
  std::set<Labels> references;
  for (const Cell& cell : cells)
    if (cell.match) references.insert(cell.reference_labels());
  return references;
}

bool any_needs_tuning(const std::vector<Cell>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.needs_tuning(); });
}

std::string describe(const Labels& labels) {
  std::string text;
  for (const auto& [key, label] : labels) text += (text.empty() ? "" : ", ") + key + " = " + label;
  return text.empty() ? "the scenario" : text;
}

class Tuner {
 public:
  // Without `catalog` nothing may run: what is stored must do.
  Tuner(std::vector<Cell>& cells, const DataCatalog* catalog, const TuningMachine& machine)
      : cells_(cells),
        catalog_(catalog),
        machine_(machine),
        settings_(cells.front().tune ? *cells.front().tune : TuneSettings{}),
        store_(RunStore::open(machine.store, catalog != nullptr ? RunStore::Mode::create : RunStore::Mode::read)) {}

  std::vector<TunedOption> run() {
    make_candidates();
    evaluate(select([](const Cell& cell) { return !cell.match; }));
    for (const auto& [labels, _] : candidates_)
      if (!candidates_.at(labels).front().cell.match) choose(labels);
    match();
    for (const auto& [labels, _] : candidates_)
      if (candidates_.at(labels).front().cell.match) choose(labels);
    apply();
    return found_;
  }

 private:
  // Combinations that are tuned, and those that are references, with every value of the tuned key.
  void make_candidates() {
    const std::set<Labels> references = references_of(cells_);
    for (const Cell& cell : cells_) {
      if (candidates_.contains(cell.axis_labels) || (!cell.needs_tuning() && !references.contains(cell.axis_labels))) continue;
      std::vector<Candidate>& list = candidates_[cell.axis_labels];
      if (settings_.key.empty()) list.push_back({.cell = cell, .value = std::nullopt, .matched = std::nullopt});
      for (const Value& value : settings_.values)
        list.push_back({.cell = with_option(cell, settings_.key, value), .value = value, .matched = std::nullopt});
    }
  }
  template <class Which>
  std::vector<Candidate*> select(const Which& which) {
    std::vector<Candidate*> chosen;
    for (auto& [_, list] : candidates_)
      for (Candidate& candidate : list)
        if (which(candidate.cell)) chosen.push_back(&candidate);
    return chosen;
  }

  // Runs what is not stored yet, all tuning seeds of all candidates at once.
  void evaluate(const std::vector<Candidate*>& candidates) {
    std::vector<Cell> runs;
    for (const Candidate* candidate : candidates)
      for (std::int64_t s = 0; s < settings_.seeds; ++s)
        runs.push_back(with_later_seeds(candidate->cell, kTuningSeeds + static_cast<std::uint64_t>(s)));
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (!store_.has_finished(to_hex(runs[i].hash))) pending.push_back(i);
    if (!pending.empty()) run(runs, pending);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      Outcome outcome;
      for (std::int64_t s = 0; s < settings_.seeds; ++s)
        add(runs[c * static_cast<std::size_t>(settings_.seeds) + static_cast<std::size_t>(s)], outcome);
      candidates[c]->outcome = outcome;
    }
  }
  void run(const std::vector<Cell>& runs, const std::vector<std::size_t>& pending) {
    if (catalog_ == nullptr) throw NotStored();
    SweepSettings settings;
    settings.workers = machine_.workers;
    settings.threads = machine_.threads;
    settings.paging = machine_.paging;
    SweepRunner runner(runs, *catalog_, settings);
    runner.check();
    if (machine_.memory_bytes > 0) runner.fit(machine_.memory_bytes);
    SweepEvents events;
    events.signal = machine_.signal;
    runner.run(pending, store_, events);
    if (machine_.signal && machine_.signal() != 0) throw Interrupted();
  }
  void add(const Cell& cell, Outcome& outcome) const {
    const RunRecord record = store_.record(to_hex(cell.hash));
    const double share = 1 / static_cast<double>(settings_.seeds);
    const double measure = settings_.measure == "f_gap" ? record.f_gap : record.train_loss;
    outcome.bits += share * static_cast<double>(record.bits_up);
    outcome.measure += record.status == RunStatus::done && !std::isnan(measure) ? share * measure : std::numeric_limits<double>::infinity();
  }

  // All matched candidates step by step together, so that workers have enough to do.
  void match() {
    std::vector<Search> searches;
    for (Candidate* candidate : select([](const Cell& cell) { return cell.match.has_value(); })) {
      const auto reference = best_.find(candidate->cell.reference_labels());
      if (reference == best_.end())
        throw ConfigError("match_bits_of: " + describe(candidate->cell.axis_labels) + " is to match " +
                          describe(candidate->cell.reference_labels()) + ", which the sweep excludes");
      Search& search = searches.emplace_back();
      search.candidate = candidate;
      search.target = reference->second->outcome.bits;
      search.at = std::log(kFirstTry);
    }
    for (int step = 0; step < kMostSteps; ++step) {
      std::vector<Candidate*> open;
      for (Search& search : searches) {
        if (search.settled) continue;
        Candidate& candidate = *search.candidate;
        candidate.matched = Value{rounded(std::exp(search.at))};
        candidate.cell = with_option(candidate.cell, candidate.cell.match->option, *candidate.matched);
        open.push_back(&candidate);
      }
      if (open.empty()) return;
      if (machine_.note) machine_.note("matching bits, step " + std::to_string(step + 1) + ": " + std::to_string(open.size()) + " to find");
      evaluate(open);
      for (Search& search : searches)
        if (!search.settled) search.hear(search.candidate->outcome.bits);
    }
    for (const Search& search : searches)
      if (!search.settled) refuse(search);
  }
  [[noreturn]] static void refuse(const Search& search) {
    const Cell& cell = search.candidate->cell;
    throw ConfigError("match_bits_of: no value of " + cell.match->option + " makes " + describe(cell.axis_labels) + " send " +
                      std::to_string(std::llround(search.target)) + " bits as " + cell.match->reference +
                      " does; the nearest tried sends " + std::to_string(std::llround(search.candidate->outcome.bits)));
  }

  void choose(const Labels& labels) {
    std::vector<Candidate>& list = candidates_.at(labels);
    const auto best = std::min_element(list.begin(), list.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.outcome.measure < b.outcome.measure; });
    best_[labels] = &*best;
    if (best->value && std::isinf(best->outcome.measure))
      throw ConfigError("sweep.tune: every value of " + settings_.key + " made a run of " + describe(labels) + " diverge or fail");
    if (best->value && best->cell.tune != nullptr) {
      TunedOption tuned = option_of(labels, *best, settings_.key, *best->value);
      tuned.at_edge = list.size() > 1 && (best == list.begin() || best == list.end() - 1);
      found_.push_back(std::move(tuned));
    }
    if (best->cell.match) {
      TunedOption tuned = option_of(labels, *best, best->cell.match->option, *best->matched);
      tuned.target_bits = best_.at(best->cell.reference_labels())->outcome.bits;
      found_.push_back(std::move(tuned));
    }
  }
  [[nodiscard]] static TunedOption option_of(const Labels& labels, const Candidate& best, const std::string& option, Value value) {
    return {.axis_labels = labels, .option = option, .value = std::move(value), .measure = best.outcome.measure, .bits = best.outcome.bits};
  }
  void apply() {
    std::map<Labels, std::vector<const TunedOption*>> options;
    for (const TunedOption& tuned : found_) options[tuned.axis_labels].push_back(&tuned);
    for (Cell& cell : cells_) {
      if (!cell.needs_tuning()) continue;
      for (const TunedOption* tuned : options[cell.axis_labels]) cell = with_option(cell, tuned->option, tuned->value);
      cell.match.reset();
      cell.tune.reset();
    }
  }

  std::vector<Cell>& cells_;
  const DataCatalog* catalog_;
  const TuningMachine& machine_;
  const TuneSettings settings_;
  RunStore store_;
  std::map<Labels, std::vector<Candidate>> candidates_;
  std::map<Labels, const Candidate*> best_;
  std::vector<TunedOption> found_;
};

}  // namespace

std::vector<TunedOption> tune_cells(std::vector<Cell>& cells, const DataCatalog& catalog, const TuningMachine& machine) {
  if (!any_needs_tuning(cells)) return {};
  try {
    return Tuner(cells, &catalog, machine).run();
  } catch (const Interrupted&) {
    return {};
  }
}

std::vector<TunedOption> recall_tuning(std::vector<Cell>& cells, const std::filesystem::path& store) {
  std::error_code ignored;
  if (!any_needs_tuning(cells) || !std::filesystem::exists(store / RunStore::kFileName, ignored)) return {};
  TuningMachine machine;
  machine.store = store;
  try {
    return Tuner(cells, nullptr, machine).run();
  } catch (const NotStored&) {
    return {};
  }
}

std::vector<TuningEffort> expected_tuning(const std::vector<Cell>& cells) {
  std::vector<TuningEffort> efforts;
  if (!any_needs_tuning(cells)) return efforts;
  const std::set<Labels> references = references_of(cells);
  const TuneSettings settings = cells.front().tune ? *cells.front().tune : TuneSettings{};
  const auto values = static_cast<double>(std::max<std::size_t>(1, settings.values.size()));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (i > 0 && cell.axis_labels == cells[i - 1].axis_labels) continue;
    if (!cell.needs_tuning() && !references.contains(cell.axis_labels)) continue;
    efforts.push_back({i, values * static_cast<double>(settings.seeds) * (cell.match ? kExpectedSteps : 1)});
  }
  return efforts;
}

}  // namespace fl
