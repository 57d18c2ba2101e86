// Determines the parts that a feedback or a local update needs in order to run, by querying the parts; a new part needs no list of names.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::test {

using OptionValues = std::vector<std::pair<std::string, std::string>>;  // option and value, in TOML syntax

// A part of a scenario with its options.
struct FittingPart {
  std::string kind;
  OptionValues options{};
  // Returns "{kind='top_k', k=5}", in the syntax of --set.
  [[nodiscard]] std::string table() const {
    std::string text = "{kind='" + kind + "'";
    for (const auto& [option, value] : options) text += ", " + option + "=" + value;
    return text + "}";
  }
  // Returns the lines below a table's head.
  [[nodiscard]] std::string lines() const {
    std::string text = "kind = '" + kind + "'";
    for (const auto& [option, value] : options) text += "\n" + option + " = " + value;
    return text;
  }
};

// A study in which a feedback runs.
struct Fitting {
  FittingPart feedback, local, up;
  std::vector<std::pair<std::string, FittingPart>> channels{};  // channels with their own operator
  std::optional<FittingPart> down{};
  bool every_client = false;  // takes part in every round
  [[nodiscard]] std::vector<std::string> settings() const {
    std::vector<std::string> all = {"local=" + local.table(), "compressor.up=" + up.table()};
    for (const auto& [channel, op] : channels) all.push_back("compressor.up." + channel + "=" + op.table());
    if (down) all.push_back("compressor.down=" + down->table());
    all.push_back("feedback.up=" + feedback.table());
    return all;
  }
};

template <class Interface>
std::unique_ptr<Interface> with_defaults(const std::string& role, const std::string& kind) {
  return make_part<Interface>(role, kind, Registry::instance().default_options(role, kind), Device::cpu, Precision::float64);
}

// Returns a local update with small steps, and with minibatches if it draws them.
inline FittingPart fitting_local(const std::string& kind, bool subtracts_optimum) {
  Options options = Registry::instance().default_options("local_update", kind);
  Schema schema = options.schema();
  FittingPart local{.kind = kind};
  for (const auto& [option, value] : OptionValues{{"learning_rate", "0.05"}, {"batch", kind == "lsvrg" ? "1" : "3"}, {"steps", "2"}})
    if (schema.find(option) != nullptr) local.options.emplace_back(option, value);
  if (subtracts_optimum) local.options = {{"learning_rate", "0.05"}, {"subtract", "'optimum'"}};
  return local;
}

// Returns an operator that keeps the promise: Q with omega = 1/8 if it must be unbiased.
inline FittingPart fitting_operator(const OperatorNeed& need) {
  if (!need.kind.empty()) return {.kind = need.kind};
  if (need.is == OperatorClass::unbiased) return {.kind = "natural"};
  return {.kind = "top_k", .options = {{"k", "5"}}};
}
constexpr double kFittingOmega = 0.125;

// Returns the local updates that can be combined with the feedback: first those made for it, then "gradient" and "sgd", then others.
inline std::vector<std::string> suited_local_updates(const std::string& feedback, const FeedbackNeeds& needs) {
  std::vector<std::pair<int, std::string>> suited;
  for (const std::string& kind : Registry::instance().names("local_update")) {
    const auto update = with_defaults<LocalUpdate<double>>("local_update", kind);
    const std::vector<std::string> made_for = update->needs_feedback();
    const bool is_made_for = std::ranges::find(made_for, feedback) != made_for.end();
    if (!made_for.empty() && !is_made_for) continue;
    for (const Unit unit : update->units()) {
      FeedbackCombination combination;
      combination.local_update = kind;
      combination.unit = unit;
      combination.channels = update->vectors();
      combination.computes_anywhere = update->traits().computes_anywhere;
      combination.subtracts_optimum = update->traits().needs_optimum || needs.subtracts_optimum;
      if (!suits_local_work(needs, combination)) continue;
      suited.emplace_back(is_made_for ? 0 : kind == "gradient" ? 1 : kind == "sgd" ? 2 : 3, kind);
      break;
    }
  }
  std::ranges::stable_sort(suited, {}, &std::pair<int, std::string>::first);
  std::vector<std::string> kinds;
  for (auto& [_, kind] : suited) kinds.push_back(std::move(kind));
  return kinds;
}

// Returns a study of the feedback with its defaults, built from its needs, its plan and suitable local updates. Throws Error if none is
// suitable.
inline Fitting fitting_study(const std::string& feedback, const std::string& local_kind = "") {
  const auto part = with_defaults<Feedback<double>>("feedback", feedback);
  const FeedbackNeeds needs = part->needs();
  const std::vector<std::string> suited = suited_local_updates(feedback, needs);
  if (suited.empty()) throw Error("no local update suits feedback " + feedback);
  const std::string kind = local_kind.empty() ? suited.front() : local_kind;
  const auto update = with_defaults<LocalUpdate<double>>("local_update", kind);
  const std::vector<ChannelSpec> channels = channels_of(part->plan(), update->vectors());
  Fitting study{.feedback = {.kind = feedback},
                .local = fitting_local(kind, needs.subtracts_optimum && !update->traits().needs_optimum),
                .up = fitting_operator(need_of_channel(needs, channels.front().name)),
                .every_client = needs.every_client || !needs.all_at_first.empty()};
  const auto suits = [&needs](Unit unit) { return needs.units.empty() || std::ranges::find(needs.units, unit) != needs.units.end(); };
  if (const std::vector<Unit> units = update->units(); !suits(units.front()))
    study.up.options.emplace_back("unit", "'" + std::string(to_string(*std::ranges::find_if(units, suits))) + "'");
  for (const ChannelSpec& channel : channels)
    if (const FittingPart op = fitting_operator(need_of_channel(needs, channel.name)); op.kind != study.up.kind)
      study.channels.emplace_back(channel.name, op);
  for (const OptionBound& bound : needs.bounds)
    study.feedback.options.emplace_back(bound.option, to_string(Value{std::min(bound.value, 0.9 / (1 + bound.omegas * kFittingOmega))}));
  if (needs.contracting_downlink) study.down = FittingPart{.kind = "top_k", .options = {{"k", "6"}}};
  return study;
}

// Returns a study of the local update with the first suitable feedback. Throws Error if there is none.
inline Fitting fitting_study_of_local_update(const std::string& kind) {
  std::vector<std::string> feedbacks = with_defaults<LocalUpdate<double>>("local_update", kind)->needs_feedback();
  if (feedbacks.empty()) feedbacks = Registry::instance().names("feedback");
  for (const std::string& feedback : feedbacks) {
    const std::vector<std::string> suited = suited_local_updates(feedback, with_defaults<Feedback<double>>("feedback", feedback)->needs());
    if (std::ranges::find(suited, kind) != suited.end()) return fitting_study(feedback, kind);
  }
  throw Error("no feedback suits local update " + kind);
}

}  // namespace fl::test
