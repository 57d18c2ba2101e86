#include "scenarios/sweep/tuning_record.hpp"

#include <string>

#include "scenarios/results/number_text.hpp"

namespace fl {
namespace {

// Returns "0.03 to 11.1", or all values if they are few or no numbers.
std::string range_text(const std::vector<Value>& values) {
  const auto is_number = [](const Value& value) { return std::holds_alternative<double>(value.data); };
  const auto text_of = [&](const Value& value) { return is_number(value) ? short_text(std::get<double>(value.data)) : to_string(value); };
  if (values.size() > 2 && is_number(values.front()) && is_number(values.back()))
    return text_of(values.front()) + " to " + text_of(values.back());
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + text_of(value);
  return text;
}

std::string place_text(const TuneSettings& settings) {
  switch (settings.at) {
    case TuneSettings::At::rounds: return "after equal rounds";
    case TuneSettings::At::bits: return std::string("at equal ") + to_string(settings.budget_bits);
    case TuneSettings::At::target: return "by the bits with which a level of it is reached";
  }
  return "";
}

}  // namespace

void record_tuned(const TunedOption& tuned, std::vector<ResolvedConstant>& found) {
  if (tuned.target_bits > 0) {
    found.push_back({"matched_bits_key:" + tuned.option, 1});
    found.push_back({"matched_bits_deviation", tuned.match.deviation});
    found.push_back({"matched_bits_tolerance", tuned.match.tolerance});
    found.push_back({"matched_bits_of:" + tuned.match.reference, tuned.target_bits});
    return;
  }
  found.push_back({"tuning_candidates:" + tuned.option, static_cast<double>(tuned.candidates)});
  if (tuned.at_edge) found.push_back({"tuned_at_edge:" + tuned.option, 1});
  if (tuned.missed > 0) found.push_back({"tuning_missed_target:" + tuned.option, static_cast<double>(tuned.missed)});
  if (tuned.candidates > 1)
    found.push_back({"tuning_tried:" + tuned.option + ":" + range_text(tuned.tried), static_cast<double>(tuned.tried.size())});
}

void record_tuning(const TuneSettings& settings, std::uint64_t first_seed, std::vector<ResolvedConstant>& found) {
  if (!settings.keys.empty()) found.push_back({"tuning_by:" + settings.measure + " " + place_text(settings), 1});
  found.push_back({"tuning_seeds", static_cast<double>(settings.seeds)});
  found.push_back({"tuning_first_seed", static_cast<double>(first_seed)});
}

}  // namespace fl
