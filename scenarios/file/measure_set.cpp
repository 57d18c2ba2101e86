#include "scenarios/file/measure_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fl_core/config/key_error.hpp"
#include "scenarios/file/stop_condition.hpp"

namespace fl {
namespace {

constexpr const char* kMeasuresKey = "evaluate.measures";
constexpr std::uint64_t kMostMeasuredCount = std::uint64_t{1} << 53;  // that a double holds exactly

template <class T>
std::unique_ptr<Measure<T>> make_measure(const NamedPart& measure) {
  return make_part<Measure<T>>("measure", measure.part, measure.options, Device::cpu, kPrecisionOf<T>);
}

NamedPart with_default_options(std::string_view name) {
  return {std::string(name), Registry::instance().default_options("measure", std::string(name))};
}

// The measure's option `every`, which all have.
std::int64_t every_of(const NamedPart& measure) {
  Options options = measure.options;
  Schema schema = options.schema();
  const Field* field = schema.find("every");
  const Value value = field == nullptr ? Value{} : field->value();
  const auto* every = std::get_if<std::int64_t>(&value.data);
  return every == nullptr ? 0 : *every;
}

// Returns which column of rounds.csv or runs.csv has this name already, or "".
std::string owner_of(const std::string& name) {
  const auto has = [&name](const auto& columns) {
    return std::ranges::any_of(columns, [&name](const auto& column) { return column.name == name; });
  };
  if (name == "run" || name.starts_with("cumulative_") || has(kRoundColumns)) return "a column of rounds.csv in every export";
  return has(kRunColumns) || has(kRunDetailColumns) ? "a column of runs.csv in every export" : "";
}

// Tells of columns that are faulty or that others have.
void check_columns_of(const std::string& measure, const std::vector<MeasureColumn>& columns, std::vector<MeasureColumn>& taken,
                      Problems& problems) {
  const auto refuse = [&](const std::string& why) { problems.push_back({kMeasuresKey, "measure \"" + measure + "\": " + why}); };
  if (columns.empty()) refuse("it has no columns");
  for (const MeasureColumn& column : columns) {
    if (const std::string fault = fault_of(column); !fault.empty())
      refuse(fault);
    else if (const std::string owner = owner_of(column.name); !owner.empty())
      refuse("column \"" + column.name + "\" has the name of " + owner);
    else if (place_of(taken, column.name) < taken.size())
      refuse("column \"" + column.name + "\" occurs twice among the columns of the scenario's measures");
    taken.push_back(column);
  }
}

}  // namespace

const StandardMeasure* find_standard_measure(std::string_view name) {
  const auto found = std::ranges::find(kStandardMeasures, name, &StandardMeasure::name);
  return found == kStandardMeasures.end() ? nullptr : &*found;
}

const std::vector<MeasureColumn>& standard_columns() {
  static const std::vector<MeasureColumn> all = [] {
    std::vector<MeasureColumn> columns;
    for (const StandardMeasure& standard : kStandardMeasures)
      for (MeasureColumn& column : columns_of_measure(with_default_options(standard.name))) columns.push_back(std::move(column));
    columns.push_back({.name = "round",
                       .unit = "rounds",
                       .definition = "number r of the round",
                       .empty = "never",
                       .type = MeasureColumn::Type::count,
                       .is_compared = false});
    columns.push_back({.name = "simulated_s",
                       .unit = "s",
                       .definition = "simulated time since the start, when the server has taken the round's step",
                       .empty = "the scenario has neither [network] nor [devices]; over a network a policy that does not wait for all",
                       .is_compared = false});
    return columns;
  }();
  return all;
}

std::vector<MeasureColumn> columns_of_measure(const NamedPart& measure) { return make_measure<double>(measure)->columns(); }

std::vector<MeasureColumn> columns_of_measures(const std::vector<NamedPart>& measures) {
  std::vector<MeasureColumn> columns;
  for (const NamedPart& measure : measures)
    for (MeasureColumn& column : columns_of_measure(measure)) columns.push_back(std::move(column));
  return columns;
}

MeasureFacts measure_facts(const std::string& name) {
  const auto measure = make_measure<double>(with_default_options(name));
  const StandardMeasure* standard = find_standard_measure(name);
  const auto due = [&]() -> std::string {
    if (standard != nullptr) return standard->key.empty() ? "in each round" : "with `" + std::string(standard->key) + "`";
    switch (measure->when()) {
      case MeasureTimes::each_round: return "in each round, or with `every`";
      case MeasureTimes::evaluations: return "with `evaluate.every`, or with `every`";
      case MeasureTimes::messages: return "with `evaluate.measure_every`, or with `every`";
      case MeasureTimes::start: return "at the start, or with `every`";
      case MeasureTimes::end: return "at the end, or with `every`";
    }
    return "";
  };
  return {due(), text_of(measure->cost()), measure->columns()};
}

void check_measures(const std::vector<NamedPart>& measures, Problems& problems) {
  constexpr std::size_t kMost = kMostMeasures - kStandardMeasures.size();
  if (measures.size() > kMost)
    problems.push_back({kMeasuresKey, "has " + std::to_string(measures.size()) + " measures, and a run takes " + std::to_string(kMost)});
  std::vector<MeasureColumn> taken;
  for (const NamedPart& measure : measures) {
    if (const StandardMeasure* standard = find_standard_measure(measure.part); standard != nullptr) {
      problems.push_back({kMeasuresKey, "\"" + measure.part + "\" need not be requested: every run has its columns" +
                                            (standard->key.empty() ? "" : ", as " + std::string(standard->key) + " says") + "; drop it"});
      continue;
    }
    try {
      check_columns_of(measure.part, columns_of_measure(measure), taken, problems);
    } catch (const ConfigError& error) {
      problems.push_back({kMeasuresKey, "measure \"" + measure.part + "\": " + error.what()});
    }
  }
  if (taken.size() > kMostMeasureColumns)
    problems.push_back({kMeasuresKey, "the measures have " + std::to_string(taken.size()) + " columns, and a run may have " +
                                          std::to_string(kMostMeasureColumns)});
}

template <class T>
MeasureSet<T>::MeasureSet(const Scenario& scenario, const MeasureSchedule& schedule) : scenario_(scenario), schedule_(schedule) {
  for (const StandardMeasure& standard : kStandardMeasures) add_standard(standard);
  for (const NamedPart& measure : scenario.evaluate.measures) about_key(kMeasuresKey, [&] { add_asked(measure); });
}

template <class T>
void MeasureSet<T>::add_standard(const StandardMeasure& standard) {
  NamedPart named = with_default_options(standard.name);
  const auto leave_out = [&named](const char* option) {
    Schema schema = named.options.schema();
    if (Field* field = schema.find(option); field != nullptr) (void)field->assign(Value{false});
  };
  if (!scenario_.evaluate.train_loss) leave_out("train_loss");
  if (!scenario_.evaluate.test_set) leave_out("test_set");
  MeasureEntry<T> entry{.name = named.part, .standard = &standard, .part = make_measure<T>(named)};
  entry.cost = entry.part->cost();
  entry.columns = entry.part->columns();
  for (const MeasureColumn& column : entry.columns)
    entry.places.push_back(
        static_cast<std::size_t>(std::ranges::find(kRoundColumns, column.name, &RoundColumn::name) - kRoundColumns.begin()));
  entry.due = due_of_standard(standard);
  entries_.push_back(std::move(entry));
}

template <class T>
void MeasureSet<T>::add_asked(const NamedPart& measure) {
  Problems problems;
  if (entries_.size() == kMostMeasures) throw ConfigError("a run takes no more measures");
  MeasureEntry<T> entry{.name = measure.part, .every = every_of(measure), .part = make_measure<T>(measure)};
  entry.when = entry.part->when();
  entry.cost = entry.part->cost();
  entry.columns = entry.part->columns();
  entry.first = columns_.size();
  check_columns_of(entry.name, entry.columns, columns_, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  entry.stops = std::ranges::any_of(scenario_.stop.measures, [&entry](const std::string& text) {
    const std::optional<StopCondition> condition = parse_stop_condition(text);
    return condition && place_of(entry.columns, condition->column) < entry.columns.size();
  });
  entry.due = due_of_asked(entry);
  entries_.push_back(std::move(entry));
}

template <class T>
void MeasureSet<T>::check(const MeasureProblem<T>& problem, Problems& problems) const {
  const EvaluateOptions& evaluate = scenario_.evaluate;
  for (const MeasureEntry<T>& entry : entries_) {
    const bool is_off = (entry.name == "average" && !evaluate.average) || (entry.name == "ranking" && evaluate.ranking_every == 0) ||
                        (entry.name == "client_accuracy" && evaluate.clients_every == 0);
    if (entry.standard != nullptr && is_off) continue;
    const std::string why = !problem.has_rows && entry.part->reads_training_rows()
                                ? "reads training rows, which a server without them (serve --server-data) cannot: leave it out"
                                : entry.part->refusal(problem);
    if (why.empty()) continue;
    if (entry.standard != nullptr)
      problems.push_back({std::string(entry.standard->key), why});
    else
      problems.push_back({kMeasuresKey, "measure \"" + entry.name + "\" " + why});
  }
}

// When a measure that every run has is due: what the key says that it follows.
template <class T>
auto MeasureSet<T>::due_of_standard(const StandardMeasure& standard) const -> DueTimes {
  using Gradient = EvaluateOptions::Gradient;
  const EvaluateOptions& options = scenario_.evaluate;
  DueTimes due{.every = options.every};
  if (standard.key.empty()) due.every = 1;
  if (standard.name == "messages") due.every = schedule_.messages_every();
  if (standard.name == "updates") due.every = options.updates_every;
  if (standard.name == "average" && !options.average) due.every = 0;
  if (standard.name == "client_accuracy") due.every = options.clients_every;
  if (standard.name == "ranking") due.every = options.ranking_every;
  due.in_round_0 = standard.in_round_0 && due.every > 0;
  if (standard.name == "gradients") {
    const Gradient gradient = schedule_.wants_gradient();
    due.in_round_0 = gradient != Gradient::never;
    due.every = gradient == Gradient::every ? schedule_.gradient_every() : 0;
  }
  return due;
}

template <class T>
auto MeasureSet<T>::due_of_asked(const MeasureEntry<T>& entry) const -> DueTimes {
  DueTimes due{.every = entry.every, .in_round_0 = entry.every > 0};
  if (entry.every == 0) {
    switch (entry.when) {
      case MeasureTimes::each_round: due = {.every = 1, .in_round_0 = true}; break;
      case MeasureTimes::evaluations: due = {.every = scenario_.evaluate.every, .in_round_0 = scenario_.evaluate.every > 0}; break;
      case MeasureTimes::messages: due = {.every = schedule_.messages_every()}; break;
      case MeasureTimes::start: due = {.in_round_0 = true}; break;
      case MeasureTimes::end: due = {.in_last_round = true}; break;
    }
  }
  if (entry.cost.messages || entry.cost.updates) due.in_round_0 = false;
  return due;
}

template <class T>
DueMeasures MeasureSet<T>::due(std::uint32_t round) const {
  DueMeasures due;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const DueTimes& when = entries_[i].due;
    due[i] = round == 0
                 ? when.in_round_0
                 : schedule_.is_due(round, when.every) || (when.in_last_round && static_cast<std::int64_t>(round) == scenario_.rounds) ||
                       (entries_[i].stops && schedule_.is_due(round, scenario_.evaluate.every));
  }
  return due;
}

template <class T>
DueMeasures MeasureSet<T>::due_at_end() const {
  DueMeasures due;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const MeasureEntry<T>& entry = entries_[i];
    due[i] =
        entry.standard == nullptr && entry.every == 0 && entry.when == MeasureTimes::end && !entry.cost.messages && !entry.cost.updates;
  }
  return due;
}

template <class T>
DueMeasures MeasureSet<T>::due_with(bool evaluated, bool measured) const {
  const EvaluateOptions& options = scenario_.evaluate;
  const bool gradients = schedule_.wants_gradient() == EvaluateOptions::Gradient::every && schedule_.gradient_every() == options.every;
  DueMeasures due;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const MeasureEntry<T>& entry = entries_[i];
    const std::string& name = entry.name;
    if (entry.standard != nullptr)
      due[i] = name == "costs" || (measured && name == "messages") ||
               (evaluated && (name == "losses" || name == "virtual_drift" || (name == "average" && options.average) ||
                              (name == "gradients" && gradients)));
    else if (entry.every == 0 || entry.stops)
      due[i] = (evaluated && entry.stops) ||
               (entry.every == 0 && (entry.when == MeasureTimes::each_round || (evaluated && entry.when == MeasureTimes::evaluations) ||
                                     (measured && entry.when == MeasureTimes::messages)));
  }
  return due;
}

template <class T>
auto MeasureSet<T>::rare() const -> std::vector<Rare> {
  const EvaluateOptions& options = scenario_.evaluate;
  const bool gradient_is_rare =
      schedule_.wants_gradient() == EvaluateOptions::Gradient::every && schedule_.gradient_every() != options.every;
  std::vector<Rare> rare;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const MeasureEntry<T>& entry = entries_[i];
    std::int64_t every = 0;
    if (entry.standard == nullptr && !entry.cost.messages && !entry.cost.updates) every = entry.every;
    if (entry.standard != nullptr && entry.name == "gradients" && gradient_is_rare) every = schedule_.gradient_every();
    if (entry.standard != nullptr && entry.name == "client_accuracy") every = options.clients_every;
    if (entry.standard != nullptr && entry.name == "ranking") every = options.ranking_every;
    if (every > 0) rare.push_back({DueMeasures().set(i), every});
  }
  return rare;
}

template <class T>
bool MeasureSet<T>::needs(const DueMeasures& due, bool MeasureCost::*what) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (due[i] && entries_[i].cost.*what) return true;
  return false;
}

template <class T>
bool MeasureSet<T>::ever_needs(bool MeasureCost::*what) const {
  const bool gradients = schedule_.wants_gradient() != EvaluateOptions::Gradient::never;
  return std::ranges::any_of(entries_, [&](const MeasureEntry<T>& entry) {
    const bool is_off = (entry.name == "gradients" && !gradients) || (entry.name == "updates" && scenario_.evaluate.updates_every == 0);
    return entry.cost.*what && !(entry.standard != nullptr && is_off);
  });
}

template <class T>
bool MeasureSet<T>::is_due(std::string_view standard, const DueMeasures& due) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].standard != nullptr && entries_[i].name == standard) return due[i];
  return false;
}

template <class T>
DueMeasures MeasureSet<T>::without(std::string_view standard, DueMeasures due) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].standard != nullptr && entries_[i].name == standard) due.reset(i);
  return due;
}

template <class T>
void MeasureSet<T>::before_round(std::uint32_t round, std::span<const T> model) {
  for (MeasureEntry<T>& entry : entries_)
    if (entry.standard == nullptr) entry.part->before_round(round, model);
}

template <class T>
void MeasureSet<T>::put(const MeasureEntry<T>& entry, RoundRow& row) const {
  for (std::size_t c = 0; c < entry.columns.size(); ++c) {
    const MeasureValue& value = values_[c];
    if (!value.is_set) continue;
    const bool counts = entry.columns[c].type == MeasureColumn::Type::count;
    if (entry.standard != nullptr) {
      const auto member = kRoundColumns[entry.places[c]].member;
      if (const auto* count = std::get_if<std::uint64_t RoundRow::*>(&member))
        row.** count = value.count;
      else
        row.*std::get<double RoundRow::*>(member) = value.real;
      continue;
    }
    if (counts && value.count > kMostMeasuredCount)
      throw Error("measure \"" + entry.name + "\": column \"" + entry.columns[c].name + "\" is " + std::to_string(value.count) +
                  ", above 2^53, the largest count that a column holds");
    row.more[entry.first + c] = counts ? static_cast<double>(value.count) : value.real;
  }
}

template <class T>
void MeasureSet<T>::measure(const DueMeasures& due, const MeasureView<T>& view, RoundRow& row) {
  if (row.more.size() != columns_.size()) row.more.assign(columns_.size(), kNotMeasured);
  if (due.none()) return;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!due[i]) continue;
    MeasureEntry<T>& entry = entries_[i];
    values_.assign(entry.columns.size(), {});
    MeasureRow into(entry.name, entry.columns, values_);
    entry.part->measure(view, into);
    put(entry, row);
  }
}

template <class T>
void MeasureSet<T>::persist(Archive& archive) {
  for (MeasureEntry<T>& entry : entries_)
    if (entry.standard == nullptr) entry.part->persist(archive);
}

template class MeasureSet<float>;
template class MeasureSet<double>;

}  // namespace fl
