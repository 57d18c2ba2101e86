#include "scenarios/plugins/part_settings.hpp"

#include "fl_core/config/default_options.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/file/toml_reader.hpp"

namespace fl {

namespace {

// Applies those of the settings that are options of the part, and marks them as known.
void set_part(const PartName& part, const std::vector<Setting>& settings, std::vector<bool>& is_known, std::vector<std::string>& names,
              ProblemList& problems) {
  Options options = Registry::instance().default_options(part.role, part.name);
  Schema schema = options.schema();
  for (const Field& field : schema.fields()) names.push_back(field.name);
  for (std::size_t s = 0; s < settings.size(); ++s) {
    Field* field = schema.find(settings[s].key);
    if (field == nullptr) continue;
    is_known[s] = true;
    const Node& node = settings[s].node;
    if (const auto refused = field->assign(node.holds_table() && !field->takes_tables ? Value{} : node.value()))
      problems.add(node.place, part.name + "." + field->name + ": " + *refused);
  }
  Problems found;
  options.validate(found);
  for (const Problem& problem : found) problems.add(settings.front().node.place, part.name + "." + problem.where + ": " + problem.message);
  if (problems.empty()) set_default_options(part.role, part.name, std::move(options));
}

}  // namespace

void set_defaults(const std::vector<PartName>& parts, const std::vector<std::string>& settings) {
  if (settings.empty()) return;
  ProblemList problems;
  Node unused;
  const std::vector<Setting> read = apply_settings(unused, settings, problems);
  problems.throw_if_any();
  std::vector<bool> is_known(read.size(), false);
  std::vector<std::string> names;
  for (const PartName& part : parts) set_part(part, read, is_known, names, problems);
  for (std::size_t s = 0; s < read.size(); ++s)
    if (!is_known[s]) problems.add(read[s].node.place, unknown_key_text("", read[s].key, names));
  problems.throw_if_any();
}

}  // namespace fl
