#include "study/results/export.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "fl_core/config/error.hpp"
#include "study/output/output_file.hpp"
#include "study/results/configuration.hpp"
#include "study/results/damaged_runs.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;

std::vector<RunRecord> runs_in_order(const RunStore& store, bool reproducible, OtherResults others, std::vector<DamagedRun>& damaged) {
  std::vector<RunRecord> runs = list_whole(store, damaged);
  if (others == OtherResults::left_out) (void)remove_other_results(runs);
  if (!reproducible) return runs;
  std::ranges::sort(runs, {}, &RunRecord::run);
  for (RunRecord& run : runs) run.seconds = kNotMeasured;
  return runs;
}

// Returns the axes of all runs, in the order in which they first appear.
std::vector<std::string> axis_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  for (const RunRecord& run : runs)
    for (const AxisLabel& axis : run.axes)
      if (std::ranges::find(keys, axis.key) == keys.end()) keys.push_back(axis.key);
  return keys;
}

// Returns the columns of measures of all runs, each name once, in the order in which they first appear.
std::vector<std::string> measure_columns(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs)
    for (const MeasureColumn& column : run.columns)
      if (std::ranges::find(names, column.name) == names.end()) names.push_back(column.name);
  return names;
}

// Returns the column name of an axis. An axis over a key that is already a column of either table, such as `rounds`, gets a prefix.
std::string axis_column(const std::string& key, const std::vector<std::string>& of_measures) {
  const auto is_key = [&key](const auto& column) { return column.name == key; };
  const bool is_taken = std::ranges::any_of(kRunColumns, is_key) || std::ranges::any_of(kRoundColumns, is_key) ||
                        std::ranges::find(of_measures, key) != of_measures.end();
  return is_taken ? "axis." + key : key;
}

// Returns for each of `names` its index among the columns of the run; nothing if the run lacks it.
std::vector<std::optional<std::size_t>> places_of(const std::vector<std::string>& names, const RunRecord& run) {
  std::vector<std::optional<std::size_t>> places;
  for (const std::string& name : names) {
    const std::size_t place = place_of(run.columns, name);
    places.push_back(place < run.columns.size() ? std::optional(place) : std::nullopt);
  }
  return places;
}

std::optional<std::string> axis_label(const RunRecord& run, const std::string& key) {
  for (const AxisLabel& axis : run.axes)
    if (axis.key == key) return axis.label;
  return std::nullopt;
}

// Returns "a.so=<sha256> b.so=<sha256>".
std::string plugins_text(const RunRecord& run) {
  std::string text;
  for (const PluginUse& plugin : run.plugins) text += (text.empty() ? "" : " ") + plugin.name + "=" + plugin.sha256;
  return text;
}

// Cumulative bits up to a round. Estimated bits are unknown from the first round on that sent bits without an estimate; a round without
// messages costs no bits.
struct CumulativeBits {
  std::uint64_t up = 0, down = 0;
  double up_published = 0, up_entropy = 0;
  void add(const RoundRow& row) {
    const auto estimated = [&row](double bits) { return row.bits_up == 0 && std::isnan(bits) ? 0 : bits; };
    up += row.bits_up;
    down += row.bits_down;
    up_published += estimated(row.bits_up_published);
    up_entropy += estimated(row.bits_up_entropy);
  }
};

struct CumulativeColumn {
  std::string_view name;
  std::variant<std::uint64_t CumulativeBits::*, double CumulativeBits::*> member;
};
constexpr auto kCumulativeColumns = std::to_array<CumulativeColumn>({
    {"cumulative_bits_up_published", &CumulativeBits::up_published},
    {"cumulative_bits_up_entropy", &CumulativeBits::up_entropy},
    {"cumulative_bits_up", &CumulativeBits::up},
    {"cumulative_bits_down", &CumulativeBits::down},
});

// A key of the configuration and the name of its column.
struct KeyColumn {
  std::string key, name;
};

// Returns true if the labels of the key's axis are its values in every run, so that a separate column would repeat the axis' column.
bool is_told_by_its_axis(const std::string& key, const std::vector<RunRecord>& runs) {
  return std::ranges::all_of(runs, [&key](const RunRecord& run) {
    const std::optional<std::string> label = axis_label(run, key);
    if (!label) return false;
    const Configuration values = configuration_of(run);
    const auto found = values.find(key);
    return found != values.end() && (*label == found->second.cell || *label == found->second.toml);
  });
}

// Returns the columns of the keys in which the runs differ. Name, seed and (with --all-results) results_version have columns of their own
// and are left out; another key with the name of a column gets a prefix.
std::vector<KeyColumn> key_columns(const std::vector<RunRecord>& runs, const std::vector<std::string>& axes,
                                   const std::vector<std::string>& header) {
  std::vector<KeyColumn> columns;
  for (const std::string& key : differing_keys(runs)) {
    if (key == "name" || key == "seed" || key == kResultsVersionKey) continue;
    if (std::ranges::find(axes, key) != axes.end() && is_told_by_its_axis(key, runs)) continue;
    const bool is_taken = std::ranges::find(header, key) != header.end();
    columns.push_back({key, is_taken ? "configuration." + key : key});
  }
  return columns;
}

template <class Value>
void put(TableWriter& table, const Value& value) {
  if constexpr (std::is_same_v<Value, RunStatus>)
    table.cell(std::string(to_string(value)));
  else
    table.cell(value);
}

// Writes the keys in which runs differ and the whole configuration: as JSON values in JSON, and as text in CSV.
void put_configuration(TableWriter& table, TableFormat format, const RunRecord& run, const std::vector<KeyColumn>& columns) {
  const auto put_value = [&](const std::string& cell, const std::string& json) {
    table.cell_as_written(format == TableFormat::csv ? csv_text(cell) : json);
  };
  const Configuration values = columns.empty() ? Configuration{} : configuration_of(run);
  for (const KeyColumn& column : columns) {
    const auto found = values.find(column.key);
    found == values.end() ? table.empty_cell() : put_value(found->second.cell, found->second.json);
  }
  const std::string json = configuration_json(run);
  json.empty() ? table.empty_cell() : put_value(json, json);
}

}  // namespace

void validate(const ExportOptions& options) {
  if (options.rounds.empty() && options.runs.empty())
    throw ConfigError("export: nothing to write; give --rounds FILE, --runs FILE, or both");
  for (const fs::path& path : {options.rounds, options.runs})
    if (!path.empty() && path.extension() != ".csv" && path.extension() != ".json" && !path.string().starts_with("/dev/"))
      throw ConfigError("export: " + path.string() + " must end in .csv or .json");
}

void write_rounds(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                  std::vector<DamagedRun>& damaged) {
  std::vector<std::string> header = {"run"};
  for (const RoundColumn& column : kRoundColumns) header.emplace_back(column.name);
  const std::vector<RunRecord> runs = runs_in_order(store, reproducible, others, damaged);
  const std::vector<std::string> of_measures = measure_columns(runs);
  header.insert(header.end(), of_measures.begin(), of_measures.end());
  for (const CumulativeColumn& column : kCumulativeColumns) header.emplace_back(column.name);
  const std::vector<std::string> keys = axis_keys(runs);
  for (const std::string& key : keys) header.push_back(axis_column(key, of_measures));
  TableWriter table(out, format, header);
  for (const RunRecord& run : runs) {
    const std::optional<std::vector<RoundRow>> rows = whole_rows(store, run.run, damaged);
    if (!rows) continue;
    const std::string hash = table.written(run.run);
    std::vector<std::string> labels;
    for (const std::string& key : keys) labels.push_back(table.written(axis_label(run, key)));
    const std::vector<std::optional<std::size_t>> places = places_of(of_measures, run);
    CumulativeBits bits;
    for (const RoundRow& row : *rows) {
      bits.add(row);
      table.cell_as_written(hash);
      for (const RoundColumn& column : kRoundColumns) std::visit([&](auto member) { table.cell(row.*member); }, column.member);
      for (const std::optional<std::size_t>& place : places) table.cell(place ? row.more[*place] : kNotMeasured);
      for (const CumulativeColumn& column : kCumulativeColumns) std::visit([&](auto member) { table.cell(bits.*member); }, column.member);
      for (const std::string& label : labels) table.cell_as_written(label);
      table.end_row();
    }
  }
  table.end_table();
}

void write_runs(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                std::vector<DamagedRun>& damaged) {
  const std::vector<RunRecord> runs = runs_in_order(store, reproducible, others, damaged);
  const std::vector<std::string> keys = axis_keys(runs);
  std::vector<std::string> header;
  for (const RunColumn& column : kRunColumns) header.emplace_back(column.name);
  const std::vector<std::string> of_measures = measure_columns(runs);
  for (const std::string& key : keys) header.push_back(axis_column(key, of_measures));
  header.emplace_back("split_hash");
  // Added only if a plug-in was used, so that exports of other stores do not change.
  const bool with_plugins = std::ranges::any_of(runs, [](const RunRecord& run) { return !run.plugins.empty(); });
  if (with_plugins) header.emplace_back("plugins");
  const bool with_versions = others == OtherResults::written;
  if (with_versions) header.emplace_back(kResultsVersionKey);
  const std::vector<KeyColumn> differing = key_columns(runs, keys, header);
  for (const KeyColumn& column : differing) header.push_back(column.name);
  header.emplace_back("configuration");
  TableWriter table(out, format, header);
  for (const RunRecord& run : runs) {
    for (const RunColumn& column : kRunColumns) std::visit([&](auto member) { put(table, run.*member); }, column.member);
    for (const std::string& key : keys) table.cell_as_written(table.written(axis_label(run, key)));
    table.cell(run.split_hash);
    if (with_plugins) table.cell(plugins_text(run));
    if (with_versions) table.cell(static_cast<std::uint64_t>(results_version_of(run.scenario)));
    put_configuration(table, format, run, differing);
    table.end_row();
  }
  table.end_table();
}

ResultsVersions export_results(const RunStore& store, const ExportOptions& options, std::vector<DamagedRun>& damaged) {
  validate(options);
  std::optional<OutputFile> rounds, runs;
  if (!options.rounds.empty()) {
    rounds.emplace(options.rounds);
    write_rounds(store, options.reproducible, format_of(options.rounds), rounds->stream(), options.others, damaged);
    rounds->close();
  }
  if (!options.runs.empty()) {
    runs.emplace(options.runs);
    write_runs(store, options.reproducible, format_of(options.runs), runs->stream(), options.others, damaged);
    runs->close();
  }
  if (rounds) rounds->rename();
  if (runs) runs->rename();
  if (options.others == OtherResults::written) return {};
  std::vector<RunRecord> records = list_whole(store, damaged);
  return remove_other_results(records);
}

}  // namespace fl
