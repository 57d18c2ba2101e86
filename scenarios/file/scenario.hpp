// A Scenario is one validated experiment: what is simulated, never on which machine. Plain structs; every key has a default here.
//
// The parts of a scenario (compressor, model, ...) are named by kind and found in the registry; their options are their own structs,
// so nothing here depends on any of them. A scenario written by to_toml and read again is the same scenario with the same hash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/device.hpp"
#include "fl_core/config/expression.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/ledger.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/random/random.hpp"
#include "fl_core/round/run_settings.hpp"
#include "scenarios/data/load.hpp"

namespace fl {

// A part by name, with its options. An empty kind means that there is none.
struct Part {
  std::string kind;
  Options options;
};

// The part `kind` with its default options; an alias gives the part it stands for. Throws ConfigError, with the nearest name, when the
// registry has none.
[[nodiscard]] FL_API Part default_part(const std::string& role, const std::string& kind);

// A run ends after `rounds`, or as soon as one of these is reached.
struct StopOptions {
  std::optional<double> accuracy;      // on the test set, reaches at least
  std::optional<double> f_gap;         // f - f* falls to
  std::optional<double> train_loss;    // f falls to
  std::optional<double> grad_norm_sq;  // |grad f|^2 falls to
  std::optional<double> bits;          // up and down, all clients together, reach
  std::optional<double> bits_up;       // up alone
  std::optional<double> seconds;       // of simulated time
  std::vector<std::string> measures;   // conditions on columns of evaluate.measures (stop_condition.hpp)
};

// Exactly one of name, path and a synthetic kind.
struct DataOptions {
  std::string name;                        // of a known data set
  std::string path;                        // of a file or folder
  Part synthetic;                          // role "data"
  std::string test = "auto";               // a data set or file; "auto" is <name>.t where there is one; "none"
  double test_fraction = 0;                // of the rows, held out at random with test_seed; of text and ratings, the last of each client's
  std::optional<std::uint64_t> test_seed;  // unset: the data seed
  std::int64_t rows = 0;                   // first rows used; 0 = all
  std::int64_t features = 0;               // 0 = the largest index in the file
  Storage storage = Storage::automatic;
  LabelKind labels = LabelKind::classes;
  FormatOptions formats;

  [[nodiscard]] FileDataOptions file() const;  // what the loader needs when the data is not synthetic
  // Returns true if `test_seed` decides which rows are held out: synthetic data are drawn anew with each data seed.
  [[nodiscard]] bool draws_test_rows() const { return test_fraction > 0 && synthetic.kind.empty(); }
};

struct PartitionSpec {
  Part part{"contiguous", {}};  // role "partitioner"
  std::int64_t clients = 10;
};

// f(x) = sum_i w_i f_i(x) + l2/2 |x|^2 + nonconvex * sum_j x_j^2 / (1 + x_j^2)
struct ModelSpec {
  enum class Weights { rows, uniform };
  Part part;  // role "model"
  Expression l2 = 0.0;
  Expression nonconvex = 0.0;
  Weights weights = Weights::rows;
  std::vector<std::string> keep;  // patterns of names of the tensors that stay with each client
};

struct StartOptions {
  enum class Kind { automatic, zero, random, file, optimum };
  Kind kind = Kind::automatic;
  double shift = 0;  // added to every parameter
  std::string path;
};

// The participation of clients, and the treatment of the error memory of those that do not take part.
struct ParticipationSpec {
  Part part{"full", {}};  // role "participation"
  AbsentState absent = AbsentState::keep;
  double absent_decay = 0.9;  // factor per missed round, for AbsentState::decay
};

// The rule by which the clients' vectors become the server's estimate, and the optimiser that uses it.
struct ServerSpec {
  Part part{"sgd", {}};  // role "server_optimizer"
  Average average = Average::weighted;
  // The treatment of the clients' running statistics of batch normalisation: clients send them for the server's mean, or keep them.
  enum class Statistics { average, local };
  std::optional<Statistics> statistics;  // unset: average, or the model has none
  // Returns the kind of the model's running averages.
  [[nodiscard]] ParameterKind kind_of_averages() const {
    return statistics == Statistics::local ? ParameterKind::kept : ParameterKind::averaged;
  }
};

// The compression of one channel.
struct CompressorSpec {
  Part part{"identity", {}};  // role "compressor"
  std::optional<Unit> unit;   // unset: what the local update sends by itself
  ScopeKind scope = ScopeKind::model;
  std::int64_t bucket = 0;  // elements, for ScopeKind::bucket
  std::vector<std::string> exclude;
};

// The compression and the form of the model that the server sends.
struct DownSpec : CompressorSpec {
  DownSends identity_sends = DownSends::changes;  // where the operator is an identity: changes or model
  [[nodiscard]] DownSends sends() const { return part.kind == "identity" ? identity_sends : DownSends::difference; }
};

// The server's machine and its link, in simulated time. Unset: they take no time, and the link is not shared.
struct ServerTiming {
  std::optional<double> flops, bandwidth;  // operations and bytes of memory per second
  std::optional<double> down, up;          // bit/s to and from all clients together
};

// The reference value f*: not used, computed from the data, or read from a file that holds x*.
struct OptimumSource {
  bool is_used = true;
  std::string path;
};

struct EvaluateOptions {
  enum class PublishedMetrics { none, ec_gd, ec_sgd };
  std::int64_t every = 10;         // rounds
  std::int64_t measure_every = 0;  // rounds; 0 = the same as every
  // zeta^2 and |grad f|^2, which take the gradient of all rows: with every evaluation, at the start alone, or never. Automatic: with every
  // one, but at the start alone for neural networks.
  enum class Gradient { automatic, every, start, never };
  Gradient gradient = Gradient::automatic;
  std::int64_t gradient_every = 0;  // rounds, for Gradient::every; 0 = the same as every
  // Rounds between; 0 = never.
  std::int64_t clients_every = 0;   // accuracy on each client's own rows
  std::int64_t ranking_every = 0;   // hit rate and NDCG
  std::int64_t updates_every = 0;   // how unlike the clients' updates are
  bool train_loss = true;           // loss over all training rows
  bool test_set = true;             // loss and accuracy on the test set; no key of a file: the runs of tuning go without
  bool late_losses = false;         // only where the end point needs them; no key of a file: the runs of tuning ask for it
  bool average = false;             // f_gap of the weighted average of all models as well
  std::vector<NamedPart> measures;  // role "measure": those that are asked for, with columns of their own
  PublishedMetrics published_metrics = PublishedMetrics::none;
  OptimumSource optimum;
  // A run whose train_loss ends above this many times its value at the start has diverged. Unset: kDivergenceFactor.
  std::optional<double> divergence_factor{};
};

// Costs that take the place of those that the parts state.
struct CostOptions {
  std::optional<double> model_flops, model_bytes;                        // of a row, both passes of a gradient
  std::optional<double> local_flops, local_bytes;                        // of a local step, the gradient not included
  std::optional<double> compressor_passes, compressor_operations;        // per entry of a message's scope
  std::optional<double> feedback_passes, feedback_operations;            // per parameter
  std::optional<double> postprocessor_passes, postprocessor_operations;  // per parameter

  friend bool operator==(const CostOptions&, const CostOptions&) = default;
};

struct Scenario {
  std::string name;
  std::int64_t rounds = 0;
  Precision precision = Precision::float32;
  MatrixProducts matrix_products = MatrixProducts::full;
  Seeds seeds;
  StopOptions stop;
  DataOptions data;
  PartitionSpec partition;
  ModelSpec model;
  StartOptions start;
  Part local{"gradient", {}};  // role "local_update"
  ParticipationSpec participation;
  std::map<std::string, CompressorSpec> up{{"", {}}};  // by channel; "" is every channel without an entry of its own
  DownSpec down;
  Part feedback_up{"none", {}};     // role "feedback"
  Part local_optimizer{"sgd", {}};  // role "local_optimizer"
  Part postprocessor{"none", {}};   // role "postprocessor"
  Part aggregation{"mean", {}};     // role "aggregation"
  Part delivery{"all", {}};         // role "delivery"
  Part devices{"none", {}};         // role "devices"; "none": computing takes no time
  CostOptions costs;
  Part network{"none", {}};         // role "network"; "none": messages take no time
  Part availability{"always", {}};  // role "availability"
  Part asynchronous{"none", {}};    // role "asynchronous"; "none": rounds wait for their messages
  ServerTiming server_timing;
  ServerSpec server;
  EvaluateOptions evaluate;

  // Returns whether the run has a clock of simulated time.
  [[nodiscard]] bool has_clock() const { return devices.kind != "none" || network.kind != "none"; }
  [[nodiscard]] bool is_asynchronous() const { return asynchronous.kind != "none"; }
  // Returns the compression of a channel on the uplink.
  [[nodiscard]] const CompressorSpec& compressor_up(const std::string& channel) const;
};

// Returns the key that says which data there are: "data.name", "data.path" or "data.kind".
[[nodiscard]] FL_API std::string key_of_data(const DataOptions& data);

// The whole scenario as canonical TOML: every key, defaults included. Reading it again gives the same scenario and the same text.
[[nodiscard]] FL_API std::string to_toml(const Scenario& scenario);

// The same text for scenarios that differ from one in few tables: the text of the others is written once.
class FL_API ScenarioTexts {
 public:
  explicit ScenarioTexts(const Scenario& first);
  // Returns to_toml(scenario), which differs from the first one in tables of `changed` alone.
  [[nodiscard]] std::string text(const Scenario& scenario, const std::set<std::string>& changed) const;

 private:
  std::vector<std::pair<std::string, std::string>> tables_;  // path and text, in order
};

// Reads a scenario without [sweep], such as to_toml writes; `source` names it in errors. Throws ConfigError with all problems.
[[nodiscard]] FL_API Scenario parse_scenario(const std::string& text, const std::string& source);

// Identity of a canonical text, and so of a run: FNV-1a, 64 bits, finished by SplitMix64.
[[nodiscard]] FL_API std::uint64_t hash_of_text(const std::string& text);

}  // namespace fl
