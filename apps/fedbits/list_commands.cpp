// `fedbits list`: lists the available parts.
#include <CLI/CLI.hpp>
#include <iomanip>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/plugin_option.hpp"
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/meanings.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/part_facts.hpp"
#include "scenarios/file/reference.hpp"
#include "scenarios/plugins/plugins.hpp"

namespace fl {

const std::vector<std::pair<std::string, std::string>>& listed_roles() {
  static const std::vector<std::pair<std::string, std::string>> roles = {{"compressors", "compressor"},
                                                                         {"feedbacks", "feedback"},
                                                                         {"models", "model"},
                                                                         {"layers", "layer"},
                                                                         {"partitioners", "partitioner"},
                                                                         {"local-updates", "local_update"},
                                                                         {"local-optimizers", "local_optimizer"},
                                                                         {"participations", "participation"},
                                                                         {"postprocessors", "postprocessor"},
                                                                         {"aggregations", "aggregation"},
                                                                         {"deliveries", "delivery"},
                                                                         {"asynchronous", "asynchronous"},
                                                                         {"devices", "devices"},
                                                                         {"networks", "network"},
                                                                         {"availabilities", "availability"},
                                                                         {"servers", "server_optimizer"},
                                                                         {"data", "data"},
                                                                         {"measures", "measure"}};
  return roles;
}

namespace {

std::string devices_of(const std::string& role, const std::string& name) {
  std::string devices;
  for (const Device device : {Device::cpu, Device::cuda}) {
    const Registry& registry = Registry::instance();
    if (registry.contains(role, name, device, Precision::float32) || registry.contains(role, name, device, Precision::float64))
      devices += (devices.empty() ? "" : ",") + std::string(to_string(device));
  }
  return devices;
}

bool is_given(const Field& field) { return field.is_set() && !std::holds_alternative<std::monostate>(field.value().data); }

void print_part(const std::string& role, const std::string& name, bool with_options) {
  const PartInfo& info = Registry::instance().info(role, name);
  std::cout << "  " << name << " [" << devices_of(role, name) << "]  " << info.summary << '\n';
  if (const std::string difference = difference_of(role, name); !difference.empty())
    std::cout << "      differs from its source: " << difference << '\n';
  if (!with_options) return;
  Options options = Registry::instance().default_options(role, name);
  Schema schema = options.schema();
  if (role == "measure" && find_standard_measure(name) != nullptr) schema.fields().clear();  // keys of [evaluate] set them
  for (const Field& field : schema.fields()) {
    const std::string constraint = field.constraint();
    std::cout << "      " << field.name << " = " << (is_given(field) ? to_string(field.value()) : "unset")
              << (constraint.empty() ? "" : "  (" + constraint + ")") << "  " << field.doc << '\n';
  }
  if (const std::string promise = role == "compressor" ? promise_of_compressor(name) : ""; !promise.empty())
    std::cout << "      bound on its error at d = 1,000: " << promise << "\n      its message at d = 1,000: " << message_of_compressor(name)
              << '\n';
  if (role == "measure")
    for (const std::string& fact : facts_of_measure(name)) std::cout << "      " << fact << '\n';
  if (role == "feedback")
    for (const std::string& need : needs_of_feedback(name)) std::cout << "      " << need << '\n';
  for (const Alias& alias : aliases_of(role, name))
    std::cout << "      also called: " << alias.shown() << (alias.source.empty() ? "" : " (" + alias.source + ")") << '\n';
  if (!info.source.empty()) std::cout << "      source: " << info.source << '\n';
}

// Returns "; did you mean 'fedbits list compressors top_k'?" for the name of a part, or for a word that refers to one.
std::string part_hint(const std::string& name) {
  for (const auto& [title, role] : listed_roles())
    if (Registry::instance().contains(role, name)) return "; did you mean 'fedbits list " + title + " " + name + "'?";
  for (const Meaning& meaning : meanings_of(name))
    for (const auto& [title, role] : listed_roles())
      if (!meaning.value.empty() && (meaning.table == table_of_role(role) || meaning.key == role) &&
          Registry::instance().contains(role, meaning.value))
        return "; did you mean 'fedbits list " + title + " " + meaning.value + "'?";
  return "";
}

ConfigError unknown_list(const std::string& what) {
  std::vector<std::string> titles;
  std::string all;
  for (const auto& [title, _] : listed_roles()) {
    titles.push_back(title);
    all += title + ", ";
  }
  std::string hint = part_hint(what);
  if (const std::string near = nearest_name(what, titles); hint.empty() && !near.empty()) hint = "; did you mean '" + near + "'?";
  return ConfigError("list: there is no '" + what + "'" + hint + " (lists: " + all + "reference)");
}

int list_part(const std::string& role, const std::string& name) {
  if (role == "data" && find_data_info(name) != nullptr)
    throw ConfigError("list: \"" + name + "\" is a data set, not a part; `fedbits data show " + name + "` describes it");
  const std::string part = resolve_name(role, name).part;
  print_part(role, part, true);
  if (const std::string keys = keys_beside_options(role); !keys.empty()) std::cout << "      beside its options: " << keys << '\n';
  std::cout << "      example: " << example_of_part(role, part) << '\n';
  return 0;
}

// Lists the parts that run entirely on the GPU, and the work that the host does for the others.
int list_on_gpu(const std::string& what, const std::string& name, const std::string& device) {
  if (device != "cuda") throw ConfigError("--device: must be cuda, which shows what parts leave to the host on a GPU; is '" + device + "'");
  bool is_list = false, found = false;
  for (const auto& [title, role] : listed_roles()) {
    if (!what.empty() && what != title && what != role) continue;
    is_list = true;
    if (!tells_of_gpu(role)) continue;
    found = true;
    std::cout << title << '\n';
    const std::string wanted = name.empty() ? "" : resolve_name(role, name).part;
    for (const std::string& part : Registry::instance().names(role))
      if (wanted.empty() || part == wanted) std::cout << "  " << std::left << std::setw(20) << part << " " << on_gpu(role, part) << '\n';
  }
  if (!is_list) throw unknown_list(what);
  if (!found) throw ConfigError("list: --device cuda shows compressors, feedbacks, layers and local-updates, not '" + what + "'");
  return 0;
}

int list(const std::string& what, const std::string& name) {
  if (what == "reference" && name.empty()) {
    std::cout << scenario_reference();
    return 0;
  }
  bool found = false;
  for (const auto& [title, role] : listed_roles()) {
    if (!what.empty() && what != title && what != role) continue;
    if (!name.empty()) return list_part(role, name);
    found = true;
    std::cout << title << '\n';
    for (const std::string& part : Registry::instance().names(role)) print_part(role, part, !what.empty());
  }
  if (!found) throw unknown_list(what);
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, const Guard& guard) {
  struct Arguments {
    std::string what, name, device;
    std::vector<std::string> plugins;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("list", "list parts with their options, defaults, constraints and sources");
  command->add_option(
      "WHAT", arguments->what,
      "compressors, feedbacks, models, layers, partitioners, local-updates, local-optimizers, postprocessors, participations, "
      "aggregations, deliveries, asynchronous, devices, networks, availabilities, servers, data, measures or reference");
  command->add_option("NAME", arguments->name, "show only this part, with an example");
  command->add_option("--device", arguments->device, "cuda: show which parts stay on a GPU, and what the host does for the others");
  command->footer("Examples:\n  fedbits list compressors\n  fedbits list compressors top_k\n  fedbits list feedbacks --device cuda");
  add_plugin_option(*command, arguments->plugins);
  command->callback([arguments, guard] {
    guard([&] {
      static_cast<void>(load_plugins(arguments->plugins));
      if (!arguments->device.empty()) return list_on_gpu(arguments->what, arguments->name, arguments->device);
      return list(arguments->what, arguments->name);
    });
  });
}

}  // namespace fl
