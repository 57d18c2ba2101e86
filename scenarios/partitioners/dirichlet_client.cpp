// Each client draws its own class prior, q_i ~ Dir(a), and then its rows by that prior; clients have equal sizes.
//
//   concentration = "total":      a_c = alpha p_c, p the data's class frequencies: the published form. For even p
//                                 E sum q^2 = (alpha + C) / (C (alpha + 1))
//   concentration = "per_class":  a_c = alpha for every class,       E sum q^2 = (alpha + 1) / (C alpha + 1)
//
// For even p, "total" with C alpha is "per_class" with alpha. For uneven p they differ: under "per_class" clients ask for all classes
// alike, so that a class with a share p_c < 1/C of the rows runs out for all clients at once, after p_c / (mean prior of c), about C p_c,
// of their turns, and cannot be more of anybody's rows. Under "total" they ask for a class as often as there are rows of it: no cap.
// a9a, 20 clients, 24% of the rows positive: under "per_class" with alpha = 0.3 nobody has more than about 48% of them, give or take the
// scatter of the mean prior (59% for data seed 1); under "total" with alpha = 0.6 two clients have nothing else.
//
// Rows are drawn without replacement, so a class may run out. Rule: clients take turns, one row a turn, in ascending order; a turn draws
// a class by q_i among the classes that have rows left, and by the rows left when q_i gives those no weight. After m turns every row has
// its client, and no client had the first choice throughout.
// The publication deals client by client instead: the first clients then get just what they drew, and the last ones what is left. Taking
// turns shares what is left among all, so that at small alpha clients differ less than their priors: on a9a with 40 clients and alpha =
// 0.05 the mean of sum q^2 over the clients is 0.919 of the rows dealt, and 0.983 by the formula above. `fedbits plan --split` prints both,
// and zeta^2 is measured on the rows dealt.
// Source: Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "fl_core/config/stopping.hpp"
#include "scenarios/partitioners/draws.hpp"

namespace fl {
namespace {

enum class Concentration { per_class, total };

struct DirichletClientOptions {
  double alpha = 0.5;
  Concentration concentration = Concentration::total;
};
void describe(Schema& schema, DirichletClientOptions& options) {
  schema.field("alpha", options.alpha, "concentration of the clients' class priors; small is heterogeneous").above(0).at_most(1e9);
  schema.choice("concentration", options.concentration, {{Concentration::total, "total"}, {Concentration::per_class, "per_class"}},
                "whether alpha is the sum of the classes' parameters, shared out by class frequency (as published), or each class's own, "
                "which caps a rare class at about C p_c of a client's rows");
}

using RowsOfClass = std::vector<std::vector<std::uint32_t>>;

// The class at point u of [0, 1) of the weights; the last with weight when rounding lands beyond. Classes without rows are not chosen.
// Returns C when no class that has rows has weight.
template <class Weight>
std::size_t choose(const RowsOfClass& left, double u, Weight weight) {
  double total = 0;
  for (std::size_t c = 0; c < left.size(); ++c)
    if (!left[c].empty()) total += weight(c);
  std::size_t chosen = left.size();
  double reached = 0;
  for (std::size_t c = 0; c < left.size(); ++c) {
    if (left[c].empty() || weight(c) <= 0) continue;
    chosen = c;
    reached += weight(c);
    if (u * total < reached) break;
  }
  return chosen;
}

class DirichletClient final : public Partitioner {
 public:
  explicit DirichletClient(const DirichletClientOptions& options) : options_(options) {}

  std::vector<Shard> split(const PartitionRequest& request) const override {
    require_rows(request, "dirichlet_client");
    require_labels(request, "dirichlet_client");
    RandomSequence random(request.seed, Purpose::partition);
    RowsOfClass left = rows_of_classes(request);
    const std::vector<std::vector<double>> prior = priors(left, request, random);
    for (auto& rows : left) random.shuffle(rows.begin(), rows.end());

    std::vector<Shard> shards(request.num_clients);
    for (std::size_t turn = 0; turn < request.num_rows; ++turn) {
      check_for_stop();
      const std::size_t client = turn % request.num_clients;
      auto& rows = left[choose_class(left, prior[client], random)];
      shards[client].push_back(rows.back());
      rows.pop_back();
    }
    for (Shard& shard : shards) std::sort(shard.begin(), shard.end());
    return shards;
  }

  std::string note(const PartitionRequest& request) const override {
    if (request.num_classes == 0) return "";
    const RowsOfClass rows = rows_of_classes(request);
    RandomSequence random(request.seed, Purpose::partition);
    const std::vector<std::vector<double>> drawn = priors(rows, request, random);
    const std::string capped = options_.concentration == Concentration::per_class ? note_on_cap(rows, drawn, request) : "";
    return note_on_squares(drawn) + (capped.empty() ? "" : "\n" + capped);
  }

 private:
  static constexpr double kNearlyEven = 0.9;  // of C p_c
  static std::string percent(double share) { return std::to_string(static_cast<int>(std::lround(100 * share))) + "%"; }

  // Says how unequal the priors are; `plan --split` prints the same of the rows dealt beside it.
  static std::string note_on_squares(const std::vector<std::vector<double>>& drawn) {
    double squares = 0;
    for (const auto& prior : drawn)
      for (const double q : prior) squares += q * q / static_cast<double>(drawn.size());
    char text[96];
    std::snprintf(text, sizeof text, "clients drew class priors q with a mean sum of squares of %.3f", squares);
    return text;
  }

  static std::string note_on_cap(const RowsOfClass& rows, const std::vector<std::vector<double>>& drawn, const PartitionRequest& request) {
    const auto rarest =
        std::ranges::min_element(rows, {}, [](const auto& of_class) { return of_class.empty() ? SIZE_MAX : of_class.size(); });
    const double share = static_cast<double>(rarest->size()) / static_cast<double>(request.num_rows);
    if (share * static_cast<double>(request.num_classes) > kNearlyEven) return "";
    double asked = 0;  // mean of the clients' priors of this class
    for (const auto& prior : drawn)
      asked += prior[static_cast<std::size_t>(rarest - rows.begin())] / static_cast<double>(request.num_clients);
    return "concentration \"per_class\": the rarest class has " + percent(share) +
           " of the rows and runs out for\nall clients at once: it is at most about " + percent(std::min(1.0, share / asked)) +
           " of any client's rows; see \"total\"";
  }

  // Draws the clients' class priors: [n,C].
  std::vector<std::vector<double>> priors(const RowsOfClass& rows, const PartitionRequest& request, RandomSequence& random) const {
    const std::vector<double> a = concentration(rows, request.num_rows);
    std::vector<std::vector<double>> prior;
    for (std::size_t i = 0; i < request.num_clients; ++i) prior.push_back(draw_dirichlet(a, random));
    return prior;
  }
  std::vector<double> concentration(const RowsOfClass& rows, std::size_t num_rows) const {
    std::vector<double> a;
    for (const auto& of_class : rows) {
      const double frequency = static_cast<double>(of_class.size()) / static_cast<double>(num_rows);
      a.push_back(options_.concentration == Concentration::per_class ? options_.alpha : options_.alpha * frequency);
    }
    return a;
  }

  static std::size_t choose_class(const RowsOfClass& left, const std::vector<double>& prior, RandomSequence& random) {
    const double u = random.uniform();
    const std::size_t chosen = choose(left, u, [&](std::size_t c) { return prior[c]; });
    return chosen < left.size() ? chosen : choose(left, u, [&](std::size_t c) { return static_cast<double>(left[c].size()); });
  }

  DirichletClientOptions options_;
};

FL_REGISTER_PARTITIONER(DirichletClient, DirichletClientOptions, "dirichlet_client",
                        "each client draws a class prior from a Dirichlet; equal sizes",
                        "Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution, 2019");

}  // namespace
}  // namespace fl
