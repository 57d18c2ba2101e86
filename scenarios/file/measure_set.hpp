// The measures of a run: those that every run has, by its keys, and those that its scenario asks for; when each is due.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/file/measure_schedule.hpp"
#include "scenarios/measures/measure.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// A measure that follows keys of [evaluate]. Its columns are in every run's rows (kRoundColumns); other measures have columns of their own.
struct StandardMeasure {
  std::string_view name, key;  // key: what it is due with, and where a problem with it is told
  bool in_round_0;
};
// In the order in which a report names their columns.
inline constexpr auto kStandardMeasures = std::to_array<StandardMeasure>({
    {"losses", "evaluate.every", true},
    {"ranking", "evaluate.ranking_every", true},
    {"client_accuracy", "evaluate.clients_every", true},
    {"updates", "evaluate.updates_every", false},
    {"average", "evaluate.average", false},
    {"gradients", "evaluate.gradient", true},
    {"virtual_drift", "evaluate.every", true},
    {"messages", "evaluate.measure_every", false},
    {"costs", "", false},
});
[[nodiscard]] FL_API const StandardMeasure* find_standard_measure(std::string_view name);  // null for another one

// Returns the columns of rounds.csv that every run has, those of the standard measures first, each as the report knows it.
[[nodiscard]] FL_API const std::vector<MeasureColumn>& standard_columns();
// Returns the columns of a measure with these options.
[[nodiscard]] FL_API std::vector<MeasureColumn> columns_of_measure(const NamedPart& measure);
// Returns the columns that the measures of evaluate.measures add to a run's rows.
[[nodiscard]] FL_API std::vector<MeasureColumn> columns_of_measures(const std::vector<NamedPart>& measures);
// Facts about a measure with default options: when it is due ("with `evaluate.every`"), its cost, and its columns.
struct MeasureFacts {
  std::string due, cost;
  std::vector<MeasureColumn> columns;
};
[[nodiscard]] FL_API MeasureFacts measure_facts(const std::string& name);
// Adds problems about evaluate.measures: standard measures, and columns that are faulty or taken. No data are looked at.
FL_API void check_measures(const std::vector<NamedPart>& measures, Problems& problems);

inline constexpr std::size_t kMostMeasures = 64;  // of a run
using DueMeasures = std::bitset<kMostMeasures>;

// The rounds in which a measure is due.
struct DueTimes {
  std::int64_t every = 0;      // rounds between two measurements, the last round is always measured; 0: no such rhythm
  bool in_round_0 = false;     // before the first round
  bool in_last_round = false;  // there alone
};

// A measure of the set.
template <class T>
struct MeasureEntry {
  std::string name;
  const StandardMeasure* standard = nullptr;  // null for one that the scenario asks for
  std::int64_t every = 0;                     // of the scenario's table; 0 = as `when` says
  MeasureTimes when = MeasureTimes::evaluations;
  MeasureCost cost{};
  bool stops = false;  // a condition of [stop] reads one of its columns: it is due with evaluate.every too
  DueTimes due{};
  std::size_t first = 0;  // into columns_, of one that the scenario asks for
  std::vector<MeasureColumn> columns{};
  std::vector<std::size_t> places{};  // [columns] into kRoundColumns, of a standard one
  std::unique_ptr<Measure<T>> part{};
};

template <class T>
class MeasureSet {
 public:
  // The scenario and the schedule outlive it. Throws ConfigError for a measure that cannot be made.
  MeasureSet(const Scenario& scenario, const MeasureSchedule& schedule);

  // Adds the reasons why measures that may be due cannot be measured.
  void check(const MeasureProblem<T>& problem, Problems& problems) const;
  // Columns of the measures that the scenario asks for.
  [[nodiscard]] const std::vector<MeasureColumn>& columns() const { return columns_; }

  [[nodiscard]] DueMeasures due(std::uint32_t round) const;
  // Returns the measures that are due at the end alone and need no messages or updates of a round.
  [[nodiscard]] DueMeasures due_at_end() const;
  // Returns the measures that are due in each round, also those due with the losses if `evaluated` and with the messages if `measured`.
  [[nodiscard]] DueMeasures due_with(bool evaluated, bool measured) const;
  // A measure with its own interval, in rounds, that needs no messages or updates of a round. rare() returns all of them.
  struct Rare {
    DueMeasures measure;
    std::int64_t every;
  };
  [[nodiscard]] std::vector<Rare> rare() const;
  // Returns true if one of these needs this.
  [[nodiscard]] bool needs(const DueMeasures& due, bool MeasureCost::*what) const;
  // Returns true if one of them may ever be due and needs this.
  [[nodiscard]] bool ever_needs(bool MeasureCost::*what) const;
  [[nodiscard]] bool is_due(std::string_view standard, const DueMeasures& due) const;
  // Returns the same measures without a standard one.
  [[nodiscard]] DueMeasures without(std::string_view standard, DueMeasures due) const;

  void before_round(std::uint32_t round, std::span<const T> model);
  // Gives the row the values of these measures; row.more has a place for each of columns().
  void measure(const DueMeasures& due, const MeasureView<T>& view, RoundRow& row);
  // Writes or reads the state of the measures that the scenario asks for.
  void persist(Archive& archive);

 private:
  void add_standard(const StandardMeasure& standard);
  void add_asked(const NamedPart& measure);
  [[nodiscard]] DueTimes due_of_standard(const StandardMeasure& standard) const;
  [[nodiscard]] DueTimes due_of_asked(const MeasureEntry<T>& entry) const;
  void put(const MeasureEntry<T>& entry, RoundRow& row) const;

  const Scenario& scenario_;
  const MeasureSchedule& schedule_;
  std::vector<MeasureEntry<T>> entries_;
  std::vector<MeasureColumn> columns_;
  std::vector<MeasureValue> values_;  // of the measure that is at work
};

extern template class MeasureSet<float>;
extern template class MeasureSet<double>;

}  // namespace fl
