#include "scenarios/file/scenario.hpp"

#include "fl_core/config/aliases.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/sections.hpp"

namespace fl {
namespace {

void write_keys(std::string& text, Schema& schema) {
  for (const Field& field : schema.fields()) {
    const Value value = field.value();
    if (field.is_set() && field.is_written() && !std::holds_alternative<std::monostate>(value.data))
      text += field.name + " = " + to_string(value) + "\n";
  }
}

}  // namespace

Part default_part(const std::string& role, const std::string& kind) {
  NamedPart named = resolve_name(role, kind);
  return {std::move(named.part), std::move(named.options)};
}

FileDataOptions DataOptions::file() const {
  return {.name = name.empty() ? path : name,
          .is_path = name.empty(),
          .test = test_fraction > 0 ? "none" : test,
          .rows = rows,
          .features = features,
          .storage = storage,
          .labels = labels,
          .formats = formats,
          .test_fraction = test_fraction};
}

std::string key_of_data(const DataOptions& data) {
  return !data.synthetic.kind.empty() ? "data.kind" : data.path.empty() ? "data.name" : "data.path";
}

const CompressorSpec& Scenario::compressor_up(const std::string& channel) const {
  const auto own = up.find(channel);
  return own == up.end() ? up.at("") : own->second;
}

namespace {

// The lines of one table, with its header; "" where it has none.
std::string text_of(Section& section) {
  drop_idle_keys(section);
  if (section.is_idle) std::erase_if(section.keys.fields(), section.is_idle);
  std::string lines;
  std::string own_lines;
  if (section.part != nullptr) {
    Schema own = section.part->options.schema();
    write_keys(own_lines, own);
  }
  const bool is_silent = section.part != nullptr && section.part->kind == section.unwritten_kind && own_lines.empty();
  if (section.part != nullptr && !section.part->kind.empty() && !is_silent)
    lines += "kind = " + to_string(Value{section.part->kind}) + "\n";
  write_keys(lines, section.keys);
  lines += own_lines;
  return lines.empty() || section.path.empty() ? lines : "\n[" + section.path + "]\n" + lines;
}

}  // namespace

std::string to_toml(const Scenario& scenario) {
  Scenario copy = scenario;
  std::string text;
  for (Section& section : sections_of(copy)) text += text_of(section);
  return with_results_version(std::move(text));
}

ScenarioTexts::ScenarioTexts(const Scenario& first) {
  Scenario copy = first;
  for (Section& section : sections_of(copy)) tables_.emplace_back(section.path, text_of(section));
}

std::string ScenarioTexts::text(const Scenario& scenario, const std::set<std::string>& changed) const {
  Scenario copy = scenario;
  std::vector<Section> sections = sections_of(copy, changed);
  auto next = sections.begin();
  std::string text;
  for (const auto& [path, known] : tables_) text += next != sections.end() && next->path == path ? text_of(*next++) : known;
  return with_results_version(std::move(text));
}

std::uint64_t hash_of_text(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash64(hash, 0);
}

}  // namespace fl
