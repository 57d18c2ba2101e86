#include "checks/compressor_cases.hpp"

#include <initializer_list>
#include <tuple>

#include "scenarios/file/toml_reader.hpp"

namespace fl::checks {

namespace {

constexpr const char* kExtraOptions = R"toml(
identity = [{format = "fp16"}, {format = "bf16"}, {format = "fp32"}]
top_k = [{ratio = 0.25}, {ratio = 0.25, ties = "all"}, {ratio = 0.5, value_format = "fp16"}, {ratio = 0.5, value_format = "bf16"}]
random_k = [{ratio = 0.25, scaled = false}, {ratio = 0.25, scaled = true}, {ratio = 0.5, scaled = false, value_format = "fp16"}]
perm_k = [{clients = 3}, {clients = 2, value_format = "fp16"}]
hard_threshold = [{threshold = 0.5}, {threshold = 0.25, value_format = "fp16"}, {threshold = 0.25, value_format = "bf16"}]
qsgd = [
  {levels = 1},
  {levels = 4, scaled = true},
  {levels = 16, norm = "max"},
  {levels = 1, norm = "max", scaled = true},
  {levels = 1000},
  {levels = 100000}
]
natural = [{rounding = "nearest"}]
natural_dithering = [{levels = 1}, {levels = 4, norm = "l1"}, {levels = 20, norm = "max"}, {levels = 3, scaled = true}]
adaqs = [{levels = 2, double_every = 2}, {levels = 3, double_every = 1, max_levels = 20, scaled = true}]
dqsgd = [{levels_per_unit = 0.25}, {levels_per_unit = 50.0, rule = "lambda"}]
terngrad = [{clip = 0.0}, {clip = 1.0}, {clip = 0.0, scaled = true}, {scaled = true}]
lpc = [{bits = 2}, {bits = 4, clip = 0.5}, {bits = 12, scaled = true}]
three_lc = [{sparsity = 1.5}, {sparsity = 1.9}]
fp8 = [{format = "e5m2"}, {scaled = false}, {format = "e5m2", scaled = false}]
dettmers8 = []
vqsgd = [{repetitions = 1}, {repetitions = 7, scaled = true}]
sketchml = [{buckets = 4}]
drive = [{scale = "min_error"}]
eden = [{bits = 1}, {bits = 4, scale = "min_error"}, {bits = 8}, {scale = "min_error"}]
stochastic_rounding = [{integer_bits = 4, fraction_bits = 3}, {integer_bits = 12, fraction_bits = 20, rounding = "nearest"}]
inceptionn = [{error_bits = 3}, {error_bits = 15}]
absolute_rounding = [
  {step = 0.5},
  {step = 0.5, rounding = "nearest"},
  {step = 0.25, deadzone = 0.75},
  {step = 1.0, deadzone = 2.0, rounding = "nearest", rule = "lambda"},
  {step = "2*sqrt(epsilon/d)", epsilon = 0.5}
]
sz = [
  {error_bound = 0.5},
  {error_bound = 0.5, predictor = "none"},
  {error_bound = 0.125, predictor = "plane", rule = "lambda"},
  {error_bound = 1e-5, predictor = "plane"},
  {error_bound = "sqrt(epsilon/d)", epsilon = 0.5}
]
zfp = [
  {error_bound = 0.5},
  {error_bound = 0.125, block = "square", rule = "lambda"},
  {error_bound = 1e-5, block = "square"},
  {error_bound = "sqrt(epsilon/d)", epsilon = 0.5}
]
scaled_integer = [{alpha = 8.0, bits = 8}, {alpha = 1000.0, bits = 16, rounding = "stochastic"}, {rounding = "stochastic"}]
powersgd = [{rank = 1}, {rank = 4, warm_start = false}]
aji_dropping = [{ratio = 0.25, sample = 0.5}, {ratio = 0.25, exact = true}]
dgc_sampled = [{ratio = 0.25, sample = 0.5}, {ratio = 0.1, rounds = 0}, {warmup = [0.5, 0.25], warmup_rounds = 3}]
sidco = [
  {ratio = 0.1, stages = 1},
  {ratio = 0.1, fit = "pareto", stages = 3},
  {ratio = 0.1, fit = "gamma_pareto", stages = 2},
  {ratio = 0.25, fit = "gamma_pareto", update_every = 1}
]
variance_based = [{alpha = 0.5}]
dryden = [{ratio = 0.25}]
rank_r_svd = [{rank = 1}, {rank = 5}]
absolute_low_rank = [{threshold = 1.0}, {threshold = 3.0, rule = "lambda"}]
atomo = [{ratio = 0.25}, {ratio = 0.25, scaled = true}, {atoms = "singular", rank = 2}, {atoms = "singular", rank = 1, scaled = true}]
gradzip = [{rank = 1}, {rank = 4, ridge = 0.1}]
sketched_sgd = [{ratio = 0.1, rows = 3, columns = 20}]
induced = [
  {biased = {kind = "top_k", ratio = 0.25}, unbiased = {kind = "random_k", ratio = 0.25, scaled = true}},
  {biased = {kind = "random_k", ratio = 0.5}, unbiased = {kind = "qsgd", levels = 4}}
]
schedule = [
  {stages = [{kind = "top_k", ratio = 0.5}, {kind = "top_k", ratio = 0.25}], from = [1, 5]},
  {stages = [{kind = "identity"}, {kind = "ef_sign"}], from = [1, 20]},
  {stages = [{kind = "sz"}, {kind = "zfp"}], from = [1, 20]}
]
accordion = [
  {critical = {kind = "top_k", ratio = 0.5}, otherwise = {kind = "top_k", ratio = 0.1}, window = 2},
  {critical = {kind = "rank_r_svd", rank = 3}, otherwise = {kind = "rank_r_svd", rank = 1}}
]
strom = [{tau = 0.5}]
wangni = [{ratio = 0.25}, {ratio = 0.25, scaled = true}, {ratio = 0.5, corrections = 0}]
qsparse = [
  {ratio = 0.25, levels = 1},
  {ratio = 0.25, levels = 8, scaled = false},
  {ratio = 0.5, levels = 1000},
  {ratio = 0.25, quantizer = "sign"}
]

[[lgreco]]
reference    = {kind = "top_k", ratio = 0.2}
candidates   = [{kind = "top_k", ratio = 0.05}, {kind = "top_k", ratio = 0.5}]
adjust_every = 1
steps        = 100
)toml";

std::vector<Settings> settings_of(const Node& list) {
  std::vector<Settings> all;
  for (const Node& table : list.items) {
    Settings& settings = all.emplace_back();
    for (const auto& [key, node] : table.members) settings.emplace_back(key, node.value());
  }
  return all;
}

std::map<std::string, std::vector<Settings>> read_extra_options() {
  ProblemList problems;
  const Node root = parse_toml(kExtraOptions, "compressor_cases.cpp", problems);
  problems.throw_if_any();
  std::map<std::string, std::vector<Settings>> options;
  for (const auto& [name, list] : root.members) options.emplace(name, settings_of(list));
  return options;
}

}  // namespace

const std::map<std::string, std::vector<Settings>>& extra_options() {
  static const std::map<std::string, std::vector<Settings>> options = read_extra_options();
  return options;
}

std::vector<Case> cases_of(const std::string& name) {
  const Options defaults = Registry::instance().default_options("compressor", name);
  std::vector<Case> cases = {{name, name, defaults}};
  const auto extra = extra_options().find(name);
  if (extra == extra_options().end()) return cases;
  for (const Settings& settings : extra->second) {
    Case c{name, name, defaults};
    for (const auto& [key, value] : settings) {
      Schema schema = c.options.schema();
      Field* field = schema.find(key);
      if (field == nullptr) throw Error("the table names an option that does not exist: " + name + "." + key);
      if (const auto refused = field->assign(value)) throw Error(name + "." + key + " " + *refused);
      c.label += " " + key + "=" + to_string(value);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

LayerTable small_table() {
  LayerTable table;
  std::size_t begin = 0;
  for (const auto& [name, rows, cols] : std::initializer_list<std::tuple<const char*, std::size_t, std::size_t>>{
           {"first", 5, 13}, {"bias", 13, 1}, {"scalar", 1, 1}, {"second", 8, 9}, {"head", 7, 3}}) {
    table.layers.push_back({name, begin, rows, cols});
    begin += rows * cols;
  }
  return table;
}

std::vector<NamedScope> all_scopes() {
  const LayerTable table = small_table();
  LayerTable one;
  one.layers.push_back({"only", 0, 1, 1});
  std::vector<NamedScope> scopes = {{"model", make_scope(table, ScopeKind::model, 0, {})},
                                    {"tensor", make_scope(table, ScopeKind::tensor, 0, {})},
                                    {"bucket of 16", make_scope(table, ScopeKind::bucket, 16, {})},
                                    {"tensor but bias and head", make_scope(table, ScopeKind::tensor, 0, {"bias", "head"})},
                                    {"model but first", make_scope(table, ScopeKind::model, 0, {"first"})},
                                    {"one element", make_scope(one, ScopeKind::model, 0, {})}};
  for (NamedScope& named : scopes) named.scope.clients = 6;
  return scopes;
}

}  // namespace fl::checks
