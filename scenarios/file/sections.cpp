#include "scenarios/file/sections.hpp"

#include <algorithm>
#include <utility>

#include "fl_core/config/part_field.hpp"
#include "fl_core/config/rule_field.hpp"
#include "scenarios/file/cost_section.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/file/section_fields.hpp"
#include "scenarios/file/stop_condition.hpp"
#include "scenarios/file/time_sections.hpp"

namespace fl {
namespace {

constexpr double kMostCount = 4294967295.0;   // of rounds, clients and parameters: what 32 bits number
constexpr double kLargestRounds = 268435455;  // runs that go on to a budget play a few times the scenario's rounds

void require(Problems& problems, bool holds, const std::string& key, const std::string& message) {
  if (!holds) problems.push_back({key, message});
}

Section run_section(Scenario& s) {
  Section section{.path = "", .doc = "The name and the length of the run. These keys come before the first table."};
  results_version_field(section.keys);
  section.keys.field("name", s.name, "name of the run in results and reports").required();
  section.keys.field("rounds", s.rounds, "the largest number of rounds that a run plays").at_least(1).at_most(kLargestRounds).required();
  section.keys.choice("precision", s.precision, {{Precision::float32, "float32"}, {Precision::float64, "float64"}},
                      "type of parameters, gradients and states; convex studies need float64");
  section.keys.choice("matrix_products", s.matrix_products,
                      {{MatrixProducts::full, "full"}, {MatrixProducts::tf32, "tf32"}, {MatrixProducts::bf16, "bf16"}},
                      "factors of the products in a network's layers when clients train on a GPU: unchanged, or rounded to TF32 or BF16 "
                      "for tensor cores, with sums in float32");
  common_seed_field(section.keys, s.seeds);
  section.validate = [&s](Problems& p) {
    require(p, !s.name.empty(), "name", "must not be empty");
    require(p, s.matrix_products == MatrixProducts::full || s.precision == Precision::float32, "matrix_products",
            "rounds float32; precision is float64");
  };
  return section;
}

Section seeds_section(Seeds& seeds) {
  Section section{.path = "seeds", .doc = "The four sources of randomness, each `seed` unless set here."};
  seed_field(section.keys, "data", seeds.data, seeds, "seed of the split, the held-out rows and synthetic data");
  seed_field(section.keys, "init", seeds.init, seeds, "seed of the initial model");
  seed_field(section.keys, "sampling", seeds.sampling, seeds, "seed of participation and minibatches");
  seed_field(section.keys, "compressor", seeds.compressor, seeds, "seed of random compressors");
  return section;
}

// Adds a list that is unset while it is empty, so that scenarios without it have the hashes that they had.
void optional_list(Section& section, const std::string& key, std::vector<std::string>& texts, const std::string& doc) {
  Schema one;
  Field list = one.field(key, texts, "");
  const auto set = [list](const Value& value) mutable { return list.assign(value); };
  const auto get = [list, &texts] { return texts.empty() ? Value{} : list.value(); };
  section.keys.add(Field(key, list.type, doc, set, get));
}

void stop_measures_field(Section& section, StopOptions& stop) {
  optional_list(section, "measures", stop.measures,
                "conditions on columns of evaluate.measures, each a column, >= or <=, and a number, such as \"update_cosine >= 0.9\": the "
                "first one that is met is enough. Such measures are due with evaluate.every as well");
  section.validate = [&stop](Problems& problems) {
    for (const std::string& text : stop.measures)
      require(problems, parse_stop_condition(text).has_value(), "measures",
              "must be conditions such as \"update_cosine >= 0.9\" (a column of evaluate.measures, >= or <=, a number), one is " +
                  to_string(Value{text}));
  };
}

Section stop_section(StopOptions& stop) {
  Section section{.path = "stop", .doc = "A run ends after `rounds`, or earlier when one of these is reached."};
  optional_number(section.keys, "accuracy", stop.accuracy, "test accuracy at which the run ends").above(0).at_most(1);
  optional_number(section.keys, "f_gap", stop.f_gap, "value of f - f* at which the run ends").above(0);
  optional_number(section.keys, "train_loss", stop.train_loss, "loss over all training rows, f, at which the run ends");
  optional_number(section.keys, "grad_norm_sq", stop.grad_norm_sq, "value of |grad f|^2 at which the run ends").above(0);
  optional_number(section.keys, "bits", stop.bits, "bits up and down of all clients together at which the run ends").above(0).unit("bits");
  optional_number(section.keys, "bits_up", stop.bits_up, "bits up of all clients together at which the run ends").above(0).unit("bits");
  stop_measures_field(section, stop);
  optional_number(section.keys, "seconds", stop.seconds, "simulated time at which the run ends; needs [devices] or [network]")
      .above(0)
      .unit("s");
  return section;
}

void validate_data(const DataOptions& data, Problems& problems) {
  const bool is_synthetic = !data.synthetic.kind.empty();
  const int sources = int{!data.name.empty()} + int{!data.path.empty()} + int{is_synthetic};
  require(problems, sources > 0, "", "needs data: set name (a known data set), path (a file) or kind (synthetic data)");
  require(problems, sources < 2, "", "name, path and kind exclude each other; keep one");
  const bool has_test_file = !is_synthetic && data.test != "auto" && data.test != "none";
  require(problems, !has_test_file || data.test_fraction == 0, "test_fraction", "must be 0 when test names a file");
  require(problems, !data.formats.ratings.leave_one_out || (data.test_fraction == 0 && data.test == "auto"), "leave_one_out",
          "makes a test set; leave test_fraction and test at their defaults");
  require(problems, !data.test_seed || data.test_fraction > 0, "test_seed", "has no effect unless test_fraction is above 0");
  validate(data.formats, problems);
}

Section data_section(DataOptions& data) {
  constexpr double kMostRows = 4294967295.0, kMostFeatures = 2147483648.0;
  Section section{.path = "data",
                  .doc =
                      "The training and test set: exactly one of `name`, `path` and, for synthetic data, `kind`. Of the keys here, only "
                      "`test_fraction` goes with synthetic data."};
  section.role = "data";
  section.part = &data.synthetic;
  section.presence = Section::Presence::optional;
  Schema& keys = section.keys;
  keys.field("name", data.name, "a data set that `fedbits data` lists");
  keys.field(
      "path", data.path,
      "a file or folder, plain or gzip; a relative path is looked for beside the scenario file, in the working folder, and below the data "
      "folders");
  keys.field("test", data.test,
             "test set: a data set, or a file, which is looked for like path; \"auto\" is <name>.t if it exists, \"none\" is no test set");
  keys.field("test_fraction", data.test_fraction,
             "fraction of the rows that is held out for testing, instead of a test file: at random; for text and ratings the last of each "
             "client's")
      .at_least(0)
      .below(1);
  field_through<std::int64_t>(
      keys, "test_seed", "integer",
      "draws the held-out rows; unset: the first data seed of the study, so that all its seeds and its tuning share one test set",
      [&data](std::int64_t seed) { data.test_seed = static_cast<std::uint64_t>(seed); },
      [&data] { return data.test_seed ? Value{static_cast<std::int64_t>(*data.test_seed)} : Value{}; })
      .at_least(0);
  keys.field("rows", data.rows, "only the first rows of the file; 0 = all").at_least(0).at_most(kMostRows).unit("rows");
  keys.field("features", data.features, "number of features; 0 = the largest index in the file").at_least(0).at_most(kMostFeatures);
  keys.choice("storage", data.storage, {{Storage::automatic, "auto"}, {Storage::dense, "dense"}, {Storage::sparse, "sparse"}},
              "how rows are stored; auto is dense if more than a quarter of the entries are not zero");
  keys.choice("labels", data.labels, {{LabelKind::classes, "classes"}, {LabelKind::target, "target"}},
              "meaning of a line's first number: a class, or a regression target");
  section.only_without_part = {"test", "test_seed", "rows", "features", "storage", "labels"};
  Schema formats;
  describe(formats, data.formats);
  for (Field& field : formats.fields()) {
    section.only_without_part.push_back(field.name);
    keys.add(std::move(field));
  }
  section.validate = [&data](Problems& problems) { validate_data(data, problems); };
  return section;
}

Section augment_section(DataOptions& data) {
  Section section{.path = "data.augment",
                  .doc =
                      "Random changes to training images, drawn anew for each minibatch of a local step; evaluation sees the images as "
                      "they are. Cut first, then mirrored."};
  describe(section.keys, data.formats.images.augment);
  return section;
}

Section partition_section(PartitionSpec& partition) {
  Section section{.path = "partition", .doc = "Which client holds which rows.", .role = "partitioner", .part = &partition.part};
  section.keys
      .field("clients", partition.clients, "number of clients n; 0 = the number of clients in the data (natural) or in the file (file)")
      .at_least(0)
      .at_most(kMostCount)
      .unit("clients");
  section.validate = [&partition](Problems& p) {
    require(p, partition.clients > 0 || partition.part.kind == "natural" || partition.part.kind == "file", "clients", "must be >= 1, is 0");
  };
  return section;
}

Section model_section(ModelSpec& model) {
  using Weights = ModelSpec::Weights;
  Section section{.path = "model", .doc = "The function that the clients minimise, regulariser included.", .role = "model"};
  section.part = &model.part;
  const std::vector<std::string> names = {"L", "L_max", "n", "m", "d"};
  rule_field(section.keys, "l2", model.l2, names, "weight of |x|^2 / 2").at_least(0);
  rule_field(section.keys, "nonconvex", model.nonconvex, names, "weight of sum x_j^2 / (1 + x_j^2)").at_least(0);
  section.keys.choice("weights", model.weights, {{Weights::rows, "rows"}, {Weights::uniform, "uniform"}},
                      "w_i in f = sum w_i f_i: by rows, or 1/n each");
  optional_list(
      section, "keep", model.keep,
      "names of tensors that stay with each client, which trains its own and never sends them, such as [\"bn*\", \"head*\"] (* is "
      "any characters, ? is one). The model that is evaluated has the mean of all clients' values, by w_i; `client_accuracy_*` "
      "judges each client's own");
  return section;
}

Section start_section(StartOptions& start) {
  using Kind = StartOptions::Kind;
  Section section{.path = "start", .doc = "The initial model."};
  section.keys.choice(
      "kind", start.kind,
      {{Kind::automatic, "auto"}, {Kind::zero, "zero"}, {Kind::random, "random"}, {Kind::file, "file"}, {Kind::optimum, "optimum"}},
      "zero, the model's own random start, parameters from a file, or the optimum x*; auto is random for neural networks, else zero");
  section.keys.field("shift", start.shift, "added to every parameter");
  section.keys.field(
      "path", start.path,
      "for kind = \"file\": a model as .safetensors or .npy, or text with one parameter per line; looked for like data.path");
  section.validate = [&start](Problems& p) {
    require(p, start.kind != Kind::file || !start.path.empty(), "path", "must be given when kind = \"file\", because it names that file");
    require(p, start.kind == Kind::file || start.path.empty(), "path", "has no effect unless kind = \"file\"");
  };
  return section;
}

Section part_section(const std::string& path, const std::string& role, Part& part, const std::string& doc) {
  return {.path = path, .doc = doc, .role = role, .part = &part};
}

Section participation_section(ParticipationSpec& participation) {
  Section section = part_section("participation", "participation", participation.part, "Which clients take part in a round.");
  section.keys.choice(
      "absent", participation.absent,
      {{AbsentState::keep, "keep"}, {AbsentState::decay, "decay"}, {AbsentState::drop, "drop"}, {AbsentState::server, "server"}},
      "error memory of a client that missed rounds: kept, multiplied by absent_decay per missed round, set to zero, or replaced by the "
      "mean memory of the previous round's cohort, which is sent both ways and counted");
  section.keys.field("absent_decay", participation.absent_decay, "factor per missed round, for absent = \"decay\"").at_least(0).at_most(1);
  return section;
}

// A table that scenarios may leave out, whose name is its role.
Section later_section(const std::string& role, Part& part, const std::string& unwritten_kind, const std::string& doc) {
  Section section = part_section(role, role, part, doc);
  section.unwritten_kind = unwritten_kind;
  return section;
}

Section postprocessor_section(Part& part) {
  return later_section("postprocessor", part, "none",
                       "A change of the vectors that clients give to their feedback, or of the estimate that the server steps along.");
}

Section local_optimizer_section(Part& part) {
  return later_section("local_optimizer", part, "sgd",
                       "The rule by which clients step along their stochastic gradients in their local work: for local kinds "
                       "`sgd` and `feddyn`. `sgd` without options takes the steps that `[local]` describes.");
}

Section server_section(ServerSpec& server) {
  Section section =
      part_section("server", "server_optimizer", server.part, "How the server averages the messages and applies the estimate.");
  section.keys.choice("average", server.average,
                      {{Average::weighted, "weighted"}, {Average::uniform, "uniform"}, {Average::normalised, "normalised"}},
                      "weights of the average: those of [participation], 1/M each, or FedNova's normalised average: updates per unit of "
                      "local work, times the mean work");
  using Statistics = ServerSpec::Statistics;
  optional_choice<Statistics>(section.keys, "statistics", server.statistics,
                              {{Statistics::average, "average"}, {Statistics::local, "local"}},
                              "running statistics of batch normalisation, for models that have them: every client sends its own and the "
                              "server takes their mean (average, the default), or every client keeps its own and sends none, as in FedBN "
                              "(whose clients keep the layers' scale and shift as well; these are averaged here)");
  return section;
}

Section compressor_section(const std::string& path, CompressorSpec& spec, const std::string& doc) {
  using MaybeUnit = std::optional<Unit>;
  Section section{.path = path, .doc = doc, .role = "compressor", .part = &spec.part};
  if (path != "compressor.down")
    section.keys.choice<MaybeUnit>(
        "unit", spec.unit, {{std::nullopt, "auto"}, {Unit::gradient, "gradient"}, {Unit::step, "step"}, {Unit::update, "update"}},
        "what is compressed: a gradient, step size x gradient, or a difference of models; auto is the unit of the local update");
  section.keys.choice("scope", spec.scope, {{ScopeKind::model, "model"}, {ScopeKind::tensor, "tensor"}, {ScopeKind::bucket, "bucket"}},
                      "what is compressed as one vector");
  section.keys.field("bucket", spec.bucket, "size of a bucket, for scope = \"bucket\"").at_least(0).at_most(kMostCount).unit("parameters");
  section.keys.field("exclude", spec.exclude, "names of the layers that are sent uncompressed");
  section.validate = [&spec](Problems& p) {
    require(p, spec.scope != ScopeKind::bucket || spec.bucket > 0, "bucket", "must be > 0 when scope = \"bucket\"");
    require(p, spec.scope == ScopeKind::bucket || spec.bucket == 0, "bucket", "has no effect unless scope = \"bucket\"");
  };
  return section;
}

Section down_section(DownSpec& down) {
  Section section = compressor_section("compressor.down", down, "How the server sends its model to the clients.");
  const auto set = [&down](const Value& value) -> std::optional<std::string> {
    if (down.part.kind != "identity")
      return "has no effect with kind \"" + down.part.kind + "\", which sends its own messages; drop it, or use kind = \"identity\"";
    const auto* name = std::get_if<std::string>(&value.data);
    if (name == nullptr || (*name != "changes" && *name != "model")) {
      const std::string near = name == nullptr ? "" : nearest_name(*name, {"changes", "model"});
      return "must be \"changes\" or \"model\", is " + to_string(value) + (near.empty() ? "" : "; did you mean \"" + near + "\"?");
    }
    down.identity_sends = *name == "model" ? DownSends::model : DownSends::changes;
    return std::nullopt;
  };
  const auto get = [&down] { return Value{std::string(down.identity_sends == DownSends::model ? "model" : "changes")}; };
  section.keys.add(
      Field("send", "\"changes\" or \"model\"",
            "for kind = \"identity\": the cheaper of the model and the coordinates that changed since a client's last round, or "
            "always the model; compressor.down = \"model\" is short for it",
            set, get));
  section.is_idle = [&down](const Field& field) { return field.name == "send" && down.part.kind != "identity"; };
  section.shorthand = "send";
  return section;
}

void optimum_field(Schema& schema, OptimumSource& optimum) {
  const auto set = [&optimum](const Value& value) -> std::optional<std::string> {
    if (const bool* is_used = std::get_if<bool>(&value.data)) {
      optimum = {*is_used, ""};
      return std::nullopt;
    }
    const auto* path = std::get_if<std::string>(&value.data);
    if (path == nullptr || path->empty()) return "must be true, false or the path of a file that holds x*, is " + to_string(value);
    optimum = {true, *path};
    return std::nullopt;
  };
  const auto get = [&optimum] { return optimum.path.empty() ? Value{optimum.is_used} : Value{optimum.path}; };
  schema.add(Field("optimum", "true, false or path",
                   "f* for f_gap: computed when the model is convex, not used, or at x* from a file, which is looked for like data.path",
                   set, get));
}

// A list of parts that is unset while it is empty, so that scenarios without measures of their own have the hashes that they had.
void measures_field(Schema& schema, std::vector<NamedPart>& measures) {
  Schema one;
  Field list = part_field(one, "measures", "measure", measures, "");
  const auto set = [list](const Value& value) mutable { return list.assign(value); };
  const auto get = [list, &measures] { return measures.empty() ? Value{} : list.value(); };
  Field field("measures", list.type, "additional measures, by name or as tables with options: each adds its columns to rounds.csv", set,
              get);
  field.takes_tables = true;
  schema.add(std::move(field));
}

Section evaluate_section(EvaluateOptions& evaluate) {
  using Metrics = EvaluateOptions::PublishedMetrics;
  using Gradient = EvaluateOptions::Gradient;
  Section section{.path = "evaluate", .doc = "What is measured and how often. The start and the last round are always measured."};
  section.keys.field("every", evaluate.every, "how often losses and accuracy are computed").at_least(1).at_most(kMostCount).unit("rounds");
  section.keys.field("measure_every", evaluate.measure_every, "how often norms and errors of the messages are computed; 0 = as every")
      .at_least(0)
      .at_most(kMostCount)
      .unit("rounds");
  section.keys.choice("published_metrics", evaluate.published_metrics,
                      {{Metrics::none, "none"}, {Metrics::ec_gd, "ec_gd"}, {Metrics::ec_sgd, "ec_sgd"}},
                      "add the metrics as that publication's code computed them");
  optimum_field(section.keys, evaluate.optimum);
  section.keys.choice("gradient", evaluate.gradient,
                      {{Gradient::automatic, "auto"}, {Gradient::every, "every"}, {Gradient::start, "start"}, {Gradient::never, "never"}},
                      "when zeta^2 and |grad f|^2 are computed from the gradient of all rows: with every evaluation, only at the start, or "
                      "never; auto is start for neural networks, otherwise every");
  const auto every = [&section](const char* name, std::int64_t& rounds, const std::string& doc) {
    section.keys.field(name, rounds, doc).at_least(0).at_most(kMostCount).unit("rounds");
  };
  every("gradient_every", evaluate.gradient_every, "for gradient = \"every\": how often; 0 = as every");
  every("clients_every", evaluate.clients_every,
        "how often the accuracy on each client's own rows is computed, with percentiles over the clients: on test rows if the test set is "
        "split like the clients, otherwise on training rows; 0 = never");
  every("ranking_every", evaluate.ranking_every,
        "ratings: how often hit rate and NDCG at 10 are computed, each test row's item against 99 that its user has not rated; 0 = never");
  every("updates_every", evaluate.updates_every,
        "how often the dissimilarity of the cohort's updates and the drift of its models are computed; 0 = never");
  section.keys.field("train_loss", evaluate.train_loss, "loss over all training rows; without it there is no f_gap either");
  section.keys.field(
      "average", evaluate.average,
      "also compute f_gap of the weighted average of all models so far, which the theorems of convex optimisation bound; needs x*");
  measures_field(section.keys, evaluate.measures);
  optional_number(section.keys, "divergence_factor", evaluate.divergence_factor,
                  "a run whose train_loss ends above this many times its value at the start has diverged; the default is 10")
      .above(1);
  section.validate = [&evaluate](Problems& problems) {
    Problems found;
    check_measures(evaluate.measures, found);
    for (const Problem& problem : found) problems.push_back({"measures", problem.message});
  };
  return section;
}

}  // namespace

void drop_idle_keys(Section& section) {
  if (section.part == nullptr || section.part->kind.empty()) return;
  const auto& idle = section.only_without_part;
  std::erase_if(section.keys.fields(), [&idle](const Field& f) { return std::find(idle.begin(), idle.end(), f.name) != idle.end(); });
}

namespace {

// Calls f(path, make) for every table, in order; make() describes it.
template <class F>
void for_each_section(Scenario& s, const F& f) {
  f("", [&] { return run_section(s); });
  f("seeds", [&] { return seeds_section(s.seeds); });
  f("stop", [&] { return stop_section(s.stop); });
  f("data", [&] { return data_section(s.data); });
  f("data.augment", [&] { return augment_section(s.data); });
  f("partition", [&] { return partition_section(s.partition); });
  f("model", [&] { return model_section(s.model); });
  f("start", [&] { return start_section(s.start); });
  f("local", [&] { return part_section("local", "local_update", s.local, "What a client does in a round."); });
  f("local_optimizer", [&] { return local_optimizer_section(s.local_optimizer); });
  f("participation", [&] { return participation_section(s.participation); });
  f("compressor", [] { return Section{.path = "compressor"}; });
  for (auto& [channel, spec] : s.up) {
    const std::string path = channel.empty() ? "compressor.up" : "compressor.up." + channel;
    f(path, [&path, &part = spec] {
      return compressor_section(path, part,
                                "How clients compress what they send. A table `[compressor.up.CHANNEL]` replaces this one for that "
                                "channel of the local update.");
    });
  }
  f("compressor.down", [&] { return down_section(s.down); });
  f("feedback", [] { return Section{.path = "feedback"}; });
  f("feedback.up",
    [&] { return part_section("feedback.up", "feedback", s.feedback_up, "The method that keeps the clients' compression error."); });
  f("postprocessor", [&] { return postprocessor_section(s.postprocessor); });
  f("devices", [&] { return devices_section(s.devices, s.server_timing); });
  f("costs", [&] { return costs_section(s.costs, s.devices); });
  f("network", [&] { return network_section(s.network, s.server_timing); });
  f("availability", [&] { return availability_section(s.availability); });
  f("delivery", [&] { return delivery_section(s.delivery); });
  f("asynchronous", [&] { return asynchronous_section(s.asynchronous); });
  f("aggregation", [&] {
    return later_section("aggregation", s.aggregation, "mean", "The rule by which the server makes one vector of the clients' messages.");
  });
  f("server", [&] { return server_section(s.server); });
  f("evaluate", [&] { return evaluate_section(s.evaluate); });
}

}  // namespace

std::vector<Section> sections_of(Scenario& s) {
  std::vector<Section> sections;
  for_each_section(s, [&](const std::string&, const auto& make) { sections.push_back(make()); });
  return sections;
}

std::vector<Section> sections_of(Scenario& s, const std::set<std::string>& wanted) {
  std::vector<Section> sections;
  for_each_section(s, [&](const std::string& path, const auto& make) {
    if (wanted.contains(path)) sections.push_back(make());
  });
  return sections;
}

std::vector<std::string> section_paths(const Scenario& scenario) {
  Scenario copy = scenario;
  std::vector<std::string> paths;
  for_each_section(copy, [&](const std::string& path, const auto&) { paths.push_back(path); });
  return paths;
}

}  // namespace fl
