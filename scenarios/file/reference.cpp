#include "scenarios/file/reference.hpp"

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/scenario_reader.hpp"

namespace fl {
namespace {

constexpr const char* kHead = R"md(# Scenario reference

This file is generated from the option structs by `fedbits list reference`; a test keeps it current.

A scenario file is TOML and says what is simulated. Unknown keys and wrong values are errors that name the line, the constraint and the
nearest valid name. `--set a.b=c` sets one key, or with an inline table (`--set 'compressor.up={kind="identity"}'`) a whole one.

A *number or rule* is a number, or a string such as `"1/(L+l2)"` that is resolved when the constants of the problem are known: numbers,
names, `+ - * / ^ ( )`, `sqrt`, `min` and `max`. The usual names are `L` (smoothness of f without regulariser), `L_max` (the largest L_i),
`mu`, `l2`, `n` (clients), `d` (parameters), `k` and `gamma`; each key says which it knows.
)md";

constexpr const char* kLayers = R"md(
## Layers of neural networks

The model `neural_network` and the named models that are built of layers take them in order, each as text: `"conv2d(32, 5, padding=2)"`, `"relu"`,
`"dense(classes)"`. Options are given in the order below or by name; `classes`, `features`, `vocabulary`, `users` and `items` are numbers of the
data; layers inside a layer are in brackets. A dense layer reads an image as a plain list of numbers.
)md";

constexpr const char* kMeasures = R"md(
## Measures

A measure fills columns of rounds.csv ([results.md](results.md)). Those that every run has follow the keys of `[evaluate]`. The others are requested
by name, `measures = ["model_path"]` in `[evaluate]`, or with options, `measures = [{ kind = "model_path", every = 5 }]`; their columns
follow those that every run has.
)md";

constexpr const char* kSweep = R"md(
## `[sweep]`

A grid of scenarios. Cells come in order: the first axis outermost, seeds innermost; the cells of one seed share split, initial model and
sampling, so they are paired.

| key | type | default | constraint | meaning |
|---|---|---|---|---|
| `seeds` | integer | `1` | >= 1 | cells per combination: seed, seed+1, ... for all four seeds |
| `axis` | list of tables, `[[sweep.axis]]` | none | | every combination of the axes' values becomes a cell |
| `axis.key` | string | required | | the key that the axis moves, such as `"partition.alpha"` or `"compressor.up"` |
| `axis.values` | list | required | labels differ | values of that key; a table needs a `label`, which names it in results, and replaces the table at the key. It inherits from that table the keys that do not belong to the part itself (unit, scope, bucket and exclude of a compressor) and, if `kind` is the same or not given, the part's options; it may match bits (below) |
| `axis.zip` | string | none | equally many values | axes of one zip move together |
| `axis.values[].match_bits_of` | string | none | label of another value of the axis | tunes this value until it sends as many bits as that one, within 2%, or as near as it comes |
| `axis.values[].match_key` | string | `"threshold"` | | the option that is tuned for it |
| `exclude` | list of tables, `[[sweep.exclude]]` | none | axes and labels | combinations that are left out: an axis' key and one of its labels, or a list of them |
| `set` | list of tables, `[[sweep.set]]` | none | | keys that some combinations set after the axes; a later table replaces what an earlier one sets |
| `set.when` | table | required | axes and labels, as in `exclude` | the combinations |
| `set.keys` | table | required | keys of the scenario that are no axis, are not tuned and are not matched | the keys and their values in these combinations |
| `to_bits_of` | string | none | label of a method | every run continues until it has sent the bits that this method sends in the scenario's rounds, or for four times the rounds |
| `plan_file` | string | none | path of a TOML file, beside the scenario file or from the root | the analysis plan: contrasts, measures, window, levels and margins that `report` follows. Its text and SHA-256 are stored with every run |
| `tune.key`, `tune.values` | string, list | none | | a key whose best value is found for every combination, such as `"local.learning_rate"`, and the values to try |
| `tune.keys` | list of tables with `key` and `values` | none | each key once | several keys; each applies to the methods that have it, and all combinations of their values are tried |
| `tune.seeds` | integer | `3` | in [1, 1000] | tuning seeds; never those of the study |
| `tune.measure` | string | `"train_loss"` | `train_loss`, `f_gap` or a column of `evaluate.measures` | measure to minimise, or to maximise if the column says that higher is better: its mean over the last fifth of the budget |
| `tune.at` | string | `"bits"` if a method has a budget, else `"rounds"` | `bits`, `rounds` or `target` | whether candidates are compared at equal bits, at equal rounds, or by the bits with which they reach the level of `target_of` |
| `tune.budget_of` | string | `"none"`, else the first method | label of a method | method whose bits in the scenario's rounds are the budget |
| `tune.target_of` | string | `"none"`, else the first method | label of a method | method whose end point after the scenario's rounds, tuned there, is the level to reach |
| `tune.margin` | string | `"1.1x"` | a ratio above 1, or points such as `"1pt"` | how much worse than that level is near enough |
| `tune.bits` | string | `"up"` | `up` or `both` | which bits the budget counts, or the way to the level |
)md";

// Text inside a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return result;
}

std::string code(const std::string& text) { return std::string("`").append(cell(text)).append("`"); }

std::string joined_code(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + code(name);
  return text;
}

std::string default_of(const Field& field) {
  if (field.is_required) return "required";
  const Value value = field.value();
  return !field.is_set() || std::holds_alternative<std::monostate>(value.data) ? "unset" : code(to_string(value));
}

std::string row(const Field& field) {
  const std::string type = field.choices.empty() ? cell(field.type) : "one of " + joined_code(field.choices);
  return "| " + code(field.name) + " | " + type + " | " + default_of(field) + " | " + cell(field.constraint()) + " | " +
         cell(field.unit_text) + " | " + cell(field.doc) + " |\n";
}

std::string table(Schema& schema, const std::string& first_row) {
  if (schema.fields().empty() && first_row.empty()) return "";
  std::string text = "\n| key | type | default | constraint | unit | meaning |\n|---|---|---|---|---|---|\n" + first_row;
  for (const Field& field : schema.fields()) text += row(field);
  return text;
}

// "Also called `homo` (NIID-Bench)." with the options that a name brings along.
std::string also_called(const std::string& role, const std::string& part) {
  std::string text;
  for (const Alias& alias : aliases_of(role, part)) {
    text += (text.empty() ? "\nAlso called " : ", ") + code(alias.shown());
    std::string with = alias.source;
    for (const auto& [key, value] : alias.settings) with += (with.empty() ? "" : "; ") + key + " = " + to_string(value);
    if (!with.empty()) text += " (" + with + ")";
  }
  return text.empty() ? text : text + ".\n";
}

std::string describe_part(const std::string& name, Section& section) {
  const PartInfo& info = Registry::instance().info(section.role, name);
  const Part part = default_part(section.role, name);
  check_no_shared_keys(part, section);
  Options options = part.options;
  Schema own = options.schema();
  std::string text = "\n### `kind = \"" + name + "\"`\n\n" + info.summary + "\n";
  if (!info.source.empty()) text += "\nSource: " + info.source + "\n";
  if (const std::string difference = difference_of(section.role, name); !difference.empty())
    text += "\nDiffers from its source: " + difference + ".\n";
  return text + also_called(section.role, name) + table(own, "");
}

std::string describe_layer(const std::string& name) {
  const PartInfo& info = Registry::instance().info("layer", name);
  Options options = Registry::instance().default_options("layer", name);
  Schema schema = options.schema();
  return "\n### `" + name + "`\n\n" + info.summary + "\n" + (info.source.empty() ? "" : "\nSource: " + info.source + "\n") +
         table(schema, "");
}

std::string describe_measure(const std::string& name) {
  const PartInfo& info = Registry::instance().info("measure", name);
  const MeasureFacts facts = measure_facts(name);
  const bool is_standard = find_standard_measure(name) != nullptr;
  Options options = Registry::instance().default_options("measure", name);
  Schema schema = options.schema();
  std::string text = "\n### `" + name + "`\n\n" + info.summary + (is_standard ? "; every run has its columns" : "") + "\n" +
                     (info.source.empty() ? "" : "\nSource: " + info.source + "\n") + "\nDue " + facts.due + "; it costs " + facts.cost +
                     ".\n\n| column | unit | definition | empty |\n|---|---|---|---|\n";
  for (const MeasureColumn& column : facts.columns)
    text += "| " + code(column.name) + " | " + cell(column.unit) + " | " + cell(column.definition) + " | " + cell(column.empty) + " |\n";
  return is_standard ? text : text + table(schema, "");
}

std::string describe_section(Section& section) {
  if (section.keys.fields().empty() && section.part == nullptr) return "";
  const std::string title = section.path.empty() ? "Top of the file" : "`[" + section.path + "]`";
  std::string text = "\n## " + title + "\n\n" + section.doc + "\n";
  if (section.part == nullptr) return text + table(section.keys, "");
  const std::vector<std::string> names = Registry::instance().names(section.role);
  const std::string& kind = section.part->kind;
  const std::string preset = section.presence == Section::Presence::optional ? "unset"
                             : kind.empty()                                  ? "required"
                                                                             : code(to_string(Value{kind}));
  text += table(section.keys, "| `kind` | one of " + joined_code(names) + " | " + preset +
                                  " | | | name of the part; its own keys are in the same table |\n");
  if (section.path == "compressor.down") return text + "\nThe kinds are those of `[compressor.up]`.\n";
  for (const std::string& name : names) text += describe_part(name, section);
  return text;
}

}  // namespace

std::string scenario_reference() {
  Scenario defaults;
  std::string text = kHead;
  for (Section& section : sections_of(defaults)) text += describe_section(section);
  text += kLayers;
  for (const std::string& name : Registry::instance().names("layer")) text += describe_layer(name);
  text += kMeasures;
  for (const std::string& name : Registry::instance().names("measure")) text += describe_measure(name);
  return text + kSweep;
}

}  // namespace fl
