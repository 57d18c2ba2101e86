#include "scenarios/analysis/study_setup.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "fl_core/config/registry.hpp"
#include "scenarios/analysis/stored_settings.hpp"
#include "scenarios/experiment/compressed_input.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/results/data_text.hpp"
#include "scenarios/results/number_text.hpp"

namespace fl {
namespace {

constexpr std::size_t kMostValues = 8;  // of a key that a line lists

// Returns a value as people write it: without quotation marks, 100 for 100.0, and four digits of a long fraction.
std::string unquoted(const std::string& toml) {
  constexpr std::size_t kLong = 9;
  double number = 0;
  const char* end = toml.data() + toml.size();
  if (toml.size() >= kLong && toml.find('.') != std::string::npos && std::from_chars(toml.data(), end, number).ptr == end)
    return short_text(number);
  if (toml.size() > 2 && toml.ends_with(".0")) return toml.substr(0, toml.size() - 2);
  return toml.size() >= 2 && toml.front() == '"' && toml.back() == '"' ? toml.substr(1, toml.size() - 2) : toml;
}

std::string word_list(const std::vector<std::string>& words, const std::string& between = ", ") {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), kMostValues); ++i) text += (i > 0 ? between : "") + words[i];
  return words.size() <= kMostValues ? text : text + between + "and " + std::to_string(words.size() - kMostValues) + " more";
}

std::optional<double> stored_constant(const RunRecord& record, const std::string& name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? std::nullopt : std::optional(found->value);
}

// Returns "0.35" or "0.1 to 0.4" for a constant of the runs; "" if no run has it.
std::string range_of(const StoredSettings& settings, const std::string& name) {
  double low = INFINITY, high = -INFINITY;
  for (std::size_t run = 0; run < settings.size(); ++run)
    if (const std::optional<double> value = stored_constant(settings.record(run), name); value && std::isfinite(*value)) {
      low = std::min(low, *value);
      high = std::max(high, *value);
    }
  if (low > high) return "";
  return low == high ? short_text(low) : short_text(low) + " to " + short_text(high);
}

// Returns the default values of a part's options, in TOML; none for a part of a plug-in that is not loaded.
std::map<std::string, std::string> defaults_of(const std::string& role, const std::string& kind) {
  std::map<std::string, std::string> defaults;
  try {
    Options options = Registry::instance().default_options(role, kind);
    Schema schema = options.schema();
    for (const Field& field : schema.fields()) defaults[field.name] = to_string(field.value());
  } catch (const Error&) {
  }
  return defaults;
}

// Writes what runs have in the table of a part: "top_k (ratio = 0.05, unit = step)". Options that have their defaults are left out, unless
// they are among `always`; `tables_own` are the keys that the table has beside the part's, with their defaults.
class PartWords {
 public:
  PartWords(const StoredSettings& settings, std::string path, std::string role, KeyValues tables_own = {},
            std::set<std::string> always = {})
      : settings_(settings), path_(std::move(path)), role_(std::move(role)), own_(std::move(tables_own)), always_(std::move(always)) {}

  [[nodiscard]] std::string of_run(std::size_t run) const { return words({run}); }
  [[nodiscard]] std::string of_all() const {
    std::vector<std::size_t> runs;
    for (std::size_t run = 0; run < settings_.size(); ++run) runs.push_back(run);
    return words(runs);
  }

 private:
  [[nodiscard]] std::vector<std::string> values(const std::vector<std::size_t>& runs, const std::string& key) const {
    std::vector<std::string> values;
    for (const std::size_t run : runs) {
      const std::string value = unquoted(settings_.value(run, path_ + "." + key));
      if (!settings_.value(run, path_ + "." + key).empty() && std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    return values;
  }
  [[nodiscard]] std::string words(const std::vector<std::size_t>& runs) const {
    const std::vector<std::string> kinds = values(runs, "kind");
    if (kinds.empty()) return "";
    if (kinds.size() > 1) return word_list(kinds);
    const std::map<std::string, std::string> defaults = defaults_of(role_, kinds.front());
    std::vector<std::string> options;
    for (const std::string& full : settings_.keys(path_ + ".")) {
      const std::string key = full.substr(path_.size() + 1);
      const std::vector<std::string> found = values(runs, key);
      if (key == "kind" || key.find('.') != std::string::npos || found.empty()) continue;
      const auto own = own_.find(key);
      const auto known = defaults.find(key);
      const std::string usual = own != own_.end() ? unquoted(own->second) : known != defaults.end() ? unquoted(known->second) : "";
      if (found != std::vector{usual} || always_.contains(key)) options.push_back(key + " = " + word_list(found));
    }
    std::string text = kinds.front();
    for (std::size_t i = 0; i < options.size(); ++i) text += (i == 0 ? " (" : ", ") + options[i];
    return options.empty() ? text : text + ")";
  }

  const StoredSettings& settings_;
  std::string path_, role_;
  KeyValues own_;
  std::set<std::string> always_;
};

PartWords compressor_words(const StoredSettings& settings, const std::string& path) {
  return {settings,
          path,
          "compressor",
          {{"scope", "\"model\""}, {"bucket", "0"}, {"exclude", "[]"}, {"send", "\"changes\""}, {"unit", "\"auto\""}},
          {"unit"}};
}

// Returns "mushrooms: 6,500 training rows, 112 features, 2 classes; 1,624 test rows" for each data set of the runs.
std::string sizes_of_data(const StoredSettings& settings) {
  std::vector<std::string> texts;
  for (std::size_t run = 0; run < settings.size(); ++run) {
    const RunRecord& record = settings.record(run);
    const auto count = [&record](const char* name) { return static_cast<std::size_t>(stored_constant(record, name).value_or(0)); };
    if (count("num_rows") == 0) continue;
    std::string name = unquoted(settings.value(run, "data.name"));
    if (name.empty()) name = unquoted(settings.value(run, "data.path"));
    if (name.empty()) name = unquoted(settings.value(run, "data.kind"));
    std::string text = data_text(name, count("num_rows"), count("num_features"), count("num_classes"), count("num_test_rows"));
    if (const std::size_t rows = text.find(" rows"); rows != std::string::npos) text.insert(rows, " training");
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }
  return word_list(texts, "; ");
}

std::string words_of(const StoredSettings& settings, const std::string& key) {
  std::vector<std::string> words;
  for (const std::string& value : settings.values(key))
    if (!value.empty()) words.push_back(unquoted(value));
  return word_list(words);
}

std::string data_words(const StoredSettings& settings) {
  std::string text = sizes_of_data(settings);
  const std::string share = words_of(settings, "data.test_fraction");
  if (!share.empty() && share != "0" && text.find("test rows") == std::string::npos)  // a run of an earlier version
    text += (text.empty() ? "" : "; ") + std::string("a fraction of ") + share + " of all rows is held out as test rows";
  return text;
}

// Returns the end of "30 clients with 216 to 217 training rows each"; "" if no run says it.
std::string rows_of_clients(const StoredSettings& settings) {
  double least = INFINITY, most = 0;
  for (std::size_t run = 0; run < settings.size(); ++run) {
    least = std::min(least, stored_constant(settings.record(run), "client_rows_least").value_or(INFINITY));
    most = std::max(most, stored_constant(settings.record(run), "client_rows_most").value_or(0));
  }
  if (!(least <= most)) return "";
  return " with " + short_text(least) + (least == most ? "" : " to " + short_text(most)) + " training rows each";
}

std::string clients_words(const StoredSettings& settings) {
  const std::string n = range_of(settings, "n");
  std::string parts = PartWords(settings, "partition", "partitioner", {{"clients", n}}).of_all();
  return (n.empty() ? "" : n + rows_of_clients(settings) + "; rows are split by ") + parts;
}

std::string participation_words(const StoredSettings& settings) {
  const std::string text =
      PartWords(settings, "participation", "participation", {{"absent", "\"keep\""}, {"absent_decay", "0.9"}}).of_all();
  return text == "full" ? "all clients in every round" : text;
}

std::string model_words(const StoredSettings& settings) {
  std::string text = PartWords(settings, "model", "model", {{"nonconvex", "0.0"}, {"weights", "\"rows\""}, {"l2", "0.0"}}).of_all();
  std::set<std::uint64_t> sizes;
  for (std::size_t run = 0; run < settings.size(); ++run) sizes.insert(settings.record(run).parameters);
  std::vector<std::string> counts;
  for (const std::uint64_t size : sizes)
    if (size > 0) counts.push_back(std::to_string(size));
  return counts.empty() ? text : text + "; P = " + word_list(counts) + " parameters";
}

// The step size is said once, where the scenario does not say it by a rule.
std::string local_words(const StoredSettings& settings) {
  const std::string gamma = range_of(settings, "gamma");
  std::string text = PartWords(settings, "local", "local_update", {}, {"batch", "learning_rate"}).of_all();
  const bool is_said = words_of(settings, "local.learning_rate") == gamma;
  return text + (gamma.empty() || is_said ? "" : "; step size gamma = " + gamma);
}

// Returns what f and f* are, as far as the runs know f*.
std::string objective_words(const StoredSettings& settings) {
  double error = 0, low = INFINITY, high = -INFINITY;
  for (std::size_t run = 0; run < settings.size(); ++run) {
    const RunRecord& record = settings.record(run);
    error = std::max(error, stored_constant(record, "f_star_error").value_or(0));
    if (!std::isfinite(record.f_star)) continue;
    low = std::min(low, record.f_star);
    high = std::max(high, record.f_star);
  }
  std::string text = "f is the loss over all training rows, the model's regulariser included";
  if (low > high) return text;
  text += "; f* is its minimum, " + short_text(low) + (low == high ? "" : " to " + short_text(high));
  const bool is_exact = error <= std::numeric_limits<double>::epsilon() * std::abs(low);
  return error > 0 && !is_exact ? text + ", at most " + short_text(error) + " too large" : text;
}

std::string rounds_words(const Study& study, const StoredSettings& settings) {
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (const StudyCell& cell : study.cells)
    for (const std::size_t run : cell.runs) {
      least = std::min(least, study.runs[run].record.rounds);
      most = std::max(most, study.runs[run].record.rounds);
    }
  std::string text = words_of(settings, "rounds");
  if (std::to_string(most) != text || least != most)
    text += least == most ? "; " + std::to_string(most) + " were played"
                          : "; " + std::to_string(least) + " to " + std::to_string(most) + " were played";
  for (const std::string& key : settings.keys("stop.")) text += "; a run ends at " + key + " = " + words_of(settings, key);
  return text;
}

std::string seeds_words(const Study& study) {
  std::set<std::uint64_t> seeds;
  std::size_t runs = 0;
  for (const StudyCell& cell : study.cells)
    for (const std::size_t run : cell.runs) {
      seeds.insert(study.runs[run].record.seed);
      ++runs;
    }
  if (seeds.empty()) return "";
  const bool is_row = *seeds.rbegin() - *seeds.begin() + 1 == seeds.size();
  std::vector<std::string> texts;
  for (const std::uint64_t seed : seeds) texts.push_back(std::to_string(seed));
  const std::string which = is_row && seeds.size() > 2 ? texts.front() + " to " + texts.back() : word_list(texts);
  return std::to_string(seeds.size()) + " (" + which + "); " + std::to_string(runs) + " runs in all";
}

std::string levels_words(const Study& study) {
  std::vector<std::string> levels;
  for (const Panel& panel : study.panels)
    if (std::ranges::find(levels, panel.level) == levels.end()) levels.push_back(panel.level);
  return study.axes.level.empty() ? "" : study.axes.level + " = " + word_list(levels);
}

std::vector<std::string> versions_of(const Study& study) {
  std::vector<std::string> versions;
  for (const StudyRun& run : study.runs)
    if (std::ranges::find(versions, run.record.version) == versions.end()) versions.push_back(run.record.version);
  return versions;
}

std::string program_words(const Study& study, const StoredSettings& settings) {
  std::vector<std::string> processors;
  for (std::size_t run = 0; run < settings.size(); ++run) {
    const RunRecord& record = settings.record(run);
    const std::string text =
        record.device.empty() || record.device == "cpu" ? record.cpu + " (" + record.instruction_set + ")" : record.device;
    if (std::ranges::find(processors, text) == processors.end()) processors.push_back(text);
  }
  return "fedbits " + word_list(versions_of(study)) + ", " + words_of(settings, "precision") + ", on " + word_list(processors);
}

std::string citation_of(const Study& study, const StoredSettings& settings) {
  std::set<std::string> results;
  for (std::size_t run = 0; run < settings.size(); ++run) results.insert(std::to_string(results_version_of(settings.record(run).scenario)));
  return "fedbits contributors: fedbits, a simulator of federated learning with compressed communication, version " +
         word_list(versions_of(study)) + " (results version " + word_list({results.begin(), results.end()}) + ").";
}

// Returns the keys that tuning or the matching of bits set in a run.
std::set<std::string> found_keys(const RunRecord& record) {
  std::set<std::string> keys;
  for (const ResolvedConstant& constant : record.constants)
    for (const std::string prefix : {"tuning_candidates:", "matched_bits_key:"})
      if (constant.name.starts_with(prefix)) keys.insert(constant.name.substr(prefix.size()));
  return keys;
}

// Returns what stands behind the prefix in the name of a run's constant, and the value; nothing if no constant has the prefix.
std::optional<std::pair<std::string, double>> constant_behind(const RunRecord& record, const std::string& prefix) {
  for (const ResolvedConstant& constant : record.constants)
    if (constant.name.starts_with(prefix)) return std::pair(constant.name.substr(prefix.size()), constant.value);
  return std::nullopt;
}

// Returns "0.8% below"; differences that round to nothing are "equal to".
std::string beside(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g%%", 100 * std::abs(ratio));
  if (!(std::abs(ratio) >= 5e-5)) return "equal to";
  return std::string(text) + (ratio < 0 ? " below" : " above");
}

double mean_bits_of(const Study& study, const StudyCell& cell) {
  double sum = 0;
  for (const std::size_t run : cell.runs) sum += static_cast<double>(study.runs[run].record.bits_up);
  return sum / static_cast<double>(cell.runs.size());
}

// Returns by how much the bits of a cell's runs differ from those of the method that they were to match; "" without such runs.
std::string match_in_the_study(const Study& study, const StudyCell& cell, const std::string& reference) {
  for (const StudyCell& other : study.cells)
    if (other.panel == cell.panel && study.methods[other.method] == reference)
      return ", in these runs " + beside(mean_bits_of(study, cell) / mean_bits_of(study, other) - 1);
  return "";
}

std::string remark_of_match(const Study& study, const StudyCell& cell, const RunRecord& record) {
  const std::string deviation = beside(stored_constant(record, "matched_bits_deviation").value_or(0));
  const auto reference = constant_behind(record, "matched_bits_of:");
  if (!reference) return "matched in bits: uplink bits " + deviation + " those of the reference on the tuning seeds";
  return "matched in bits: uplink bits " + deviation + " those of " + reference->first + " on the tuning seeds" +
         match_in_the_study(study, cell, reference->first);
}

std::string remark_of(const Study& study, const StudyCell& cell, const RunRecord& record, const std::string& key) {
  if (stored_constant(record, "matched_bits_key:" + key)) return remark_of_match(study, cell, record);
  const bool is_edge = stored_constant(record, "tuned_at_edge:" + key).has_value();
  if (const auto tried = constant_behind(record, "tuning_tried:" + key + ":"))
    return "tuned: best of " + short_text(tried->second) + " values, " + tried->first +
           (is_edge ? "; it lies at the end of them, and a better one may lie outside" : "");
  return "tuned: " + short_text(stored_constant(record, "tuning_candidates:" + key).value_or(0)) + " candidates" +
         (is_edge ? ", at the edge of its grid" : "");
}

std::vector<StudySetup::Found> found_values(const Study& study, const StoredSettings& settings) {
  std::vector<StudySetup::Found> found;
  for (std::size_t run = 0; run < settings.size(); ++run)
    for (const std::string& key : found_keys(settings.record(run)))
      found.push_back({settings.cell(run).panel, settings.cell(run).method, key, unquoted(settings.value(run, key)),
                       remark_of(study, settings.cell(run), settings.record(run), key)});
  return found;
}

// Returns how the values of the study were found: by what, and on which seeds. "" if none was, or if the runs are of an earlier version.
std::string tuning_words(const StoredSettings& settings) {
  for (std::size_t run = 0; run < settings.size(); ++run) {
    const RunRecord& record = settings.record(run);
    const std::optional<double> seeds = stored_constant(record, "tuning_seeds"), first = stored_constant(record, "tuning_first_seed");
    if (!seeds || !first) continue;
    const auto by = constant_behind(record, "tuning_by:");
    const auto number = [](double seed) { return std::to_string(static_cast<std::uint64_t>(seed)); };
    const std::string last = *seeds > 1 ? " to " + number(*first + *seeds - 1) : "";
    return (by ? "by " + by->first + ", " : "") + std::string(*seeds > 1 ? "on the seeds " : "on the seed ") + number(*first) + last +
           ", which the study does not use; intervals do not contain what tuning on other seeds would change";
  }
  return "";
}

// Returns the unit of a run's messages if its scenario leaves it to the local update, else "".
std::string unit_of_auto(const RunRecord& record) {
  try {
    const std::string text = compressed_input(parse_scenario(record.scenario, "stored scenario"));
    return text.substr(0, text.find(','));
  } catch (const ConfigError&) {  // a part of a plug-in that is not loaded
    return "";
  }
}

std::string compressor_of_run(const StoredSettings& settings, std::size_t run) {
  std::string words = compressor_words(settings, "compressor.up").of_run(run);
  static const std::string kAuto = "unit = auto";
  if (const std::size_t at = words.find(kAuto); at != std::string::npos)
    if (const std::string unit = unit_of_auto(settings.record(run)); unit.starts_with("unit "))
      words.replace(at, kAuto.size(), "unit = auto, here the " + unit.substr(5));
  return words;
}

// Returns ": rounding to a grid of given step", what the operator of a method does; "" if its methods have several, or if it is not known.
std::string meaning_of_method(const StoredSettings& settings, std::size_t method) {
  std::set<std::string> kinds;
  for (std::size_t run = 0; run < settings.size(); ++run)
    if (settings.cell(run).method == method) kinds.insert(unquoted(settings.value(run, "compressor.up.kind")));
  if (kinds.size() != 1 || kinds.begin()->empty()) return "";
  try {
    return ": " + Registry::instance().info("compressor", *kinds.begin()).summary;
  } catch (const Error&) {  // a part of a plug-in that is not loaded
    return "";
  }
}

// Returns what a method's label stands for: the parts that the axes of the method set, and at which levels if they differ between levels.
std::string method_words(const Study& study, const StoredSettings& settings, std::size_t method) {
  std::vector<std::string> seen;
  std::map<std::string, std::vector<std::string>> levels;  // by the words
  for (std::size_t run = 0; run < settings.size(); ++run) {
    if (settings.cell(run).method != method) continue;
    std::string words = compressor_of_run(settings, run);
    const std::string feedback = PartWords(settings, "feedback.up", "feedback").of_run(run);
    if (study.axes.method.find("feedback") != std::string::npos && !feedback.empty()) words += " with " + feedback;
    if (words.empty()) continue;
    if (!levels.contains(words)) seen.push_back(words);
    levels[words].push_back(study.panels[settings.cell(run).panel].title(study.axes.level));
  }
  const std::string meaning = meaning_of_method(settings, method);
  if (seen.size() < 2) return word_list(seen) + meaning;
  std::vector<std::string> texts;
  for (const std::string& words : seen) texts.push_back(words + " at " + word_list(levels[words]));
  return word_list(texts, "; ") + meaning;
}

}  // namespace

StudySetup setup_of(const Study& study) {
  const StoredSettings settings(study);
  StudySetup setup;
  const auto add = [&setup](const char* name, const std::string& text) {
    if (!text.empty()) setup.lines.push_back({name, text});
  };
  add("data", data_words(settings));
  add("clients", clients_words(settings));
  add("heterogeneity", levels_words(study));
  add("taking part", participation_words(settings));
  add("model", model_words(settings));
  add("objective", objective_words(settings));
  add("local work", local_words(settings));
  if (words_of(settings, "local_optimizer.kind") != "")
    add("local optimizer", PartWords(settings, "local_optimizer", "local_optimizer").of_all());
  add("error feedback", PartWords(settings, "feedback.up", "feedback").of_all());
  add("downlink", compressor_words(settings, "compressor.down").of_all());
  for (const char* role : {"postprocessor", "aggregation", "delivery", "devices", "network", "availability", "asynchronous"})
    if (words_of(settings, std::string(role) + ".kind") != "") add(role, PartWords(settings, role, role).of_all());
  add("server", PartWords(settings, "server", "server_optimizer", {{"average", "\"weighted\""}}).of_all());
  add("rounds", rounds_words(study, settings));
  const std::string every = words_of(settings, "evaluate.every");
  add("evaluated", every == "1" ? "after every round" : "every " + every + " rounds");
  add("seeds", seeds_words(study));
  add("tuning", tuning_words(settings));
  add("computed by", program_words(study, settings));
  for (std::size_t m = 0; m < study.methods.size(); ++m) setup.methods.push_back({study.methods[m], method_words(study, settings, m)});
  setup.found = found_values(study, settings);
  setup.citation = citation_of(study, settings);
  return setup;
}

}  // namespace fl
