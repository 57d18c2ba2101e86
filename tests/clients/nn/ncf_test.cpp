// Compares the network of neural collaborative filtering with PyTorch on tests/fixtures/ncf.txt, which make_ncf.py in the same folder
// writes, and tests the items that it draws.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "checks/model_cases.hpp"
#include "fl_core/data/interactions.hpp"

namespace fl {
namespace {

using checks::make_model;
using Fields = std::vector<std::pair<std::string, Value>>;

std::map<std::string, std::vector<double>> read_fixture() {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/tests/fixtures/ncf.txt");
  std::map<std::string, std::vector<double>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double x = 0; words >> x;) lines[name].push_back(x);
  }
  return lines;
}

// Pairs of users and items with targets.
template <class T>
Dataset<T> pairs(std::size_t users, std::size_t items, const std::vector<std::pair<int, int>>& of, const std::vector<double>& targets) {
  Dataset<T> data;
  data.name = "pairs";
  data.num_rows = of.size();
  data.num_features = 2;
  data.vocabulary.num_users = users;
  data.vocabulary.size = users + items;
  data.tokens.resize_discard(2 * of.size());
  for (std::size_t r = 0; r < of.size(); ++r) {
    data.tokens[2 * r] = of[r].first;
    data.tokens[2 * r + 1] = static_cast<std::int32_t>(users) + of[r].second;
  }
  data.target = targets;
  return data;
}

const Fields kSmall{{"factors", Value{std::int64_t{3}}},
                    {"embedding", Value{std::int64_t{4}}},
                    {"hidden", Value{Value::List{Value{std::int64_t{5}}, Value{std::int64_t{3}}}}}};

// The layers of an ncf of that size, as a network that takes its examples as they are.
std::unique_ptr<Model<double>> small_network(const Dataset<double>& data) {
  const std::vector<std::string> layers{
      "concat([embedding(vocabulary, 3), product], [embedding(vocabulary, 4), flatten, dense(5), relu, dense(3), relu])", "dense(1)"};
  return make_model<double>("neural_network",
                            {{"layers", Value{Value::List{Value{layers[0]}, Value{layers[1]}}}}, {"loss", Value{std::string("logistic")}}},
                            data);
}

std::vector<double> gradient_of(const Model<double>& model, const std::vector<double>& x, const std::vector<std::uint32_t>& rows,
                                double* loss, const RandomStream* random = nullptr) {
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::vector<double> g(x.size());
  const std::span<const std::uint32_t> of(rows);
  const BatchView<double> out{g.data(), nullptr, 1, x.size(), x.size()};
  const auto at = shared_view(x.data(), 1, x.size());
  if (random == nullptr)
    model.gradient(exec, at, {&of, 1}, out, loss);
  else
    model.stochastic_gradient(exec, at, {{&of, 1}, {random, 1}}, out, loss);
  return g;
}

TEST(NcfTest, TheNetworkIsThatOfPyTorch) {
  auto lines = read_fixture();
  ASSERT_EQ(lines["sizes"], (std::vector<double>{4, 11, 3, 4, 5, 3}));
  std::vector<std::pair<int, int>> of;
  for (std::size_t r = 0; r < lines["users"].size(); ++r)
    of.emplace_back(static_cast<int>(lines["users"][r]), static_cast<int>(lines["items"][r]));
  const Dataset<double> data = pairs<double>(4, 11, of, lines["targets"]);
  const auto model = small_network(data);
  const std::vector<double>&x = lines["weights"], &expected = lines["by_weights"];
  ASSERT_EQ(model->layers().size(), x.size());
  double loss = 0;
  const auto g = gradient_of(*model, x, checks::all_rows(of.size()), &loss);
  EXPECT_NEAR(loss, lines["loss"][0], 1e-13);
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(g[j], expected[j], 1e-12) << j;

  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::vector<double> scores(of.size());
  ASSERT_EQ(model->num_outputs(), 1u);
  model->outputs(exec, x.data(), data, checks::all_rows(of.size()), scores.data());
  for (std::size_t r = 0; r < of.size(); ++r) EXPECT_NEAR(scores[r], lines["scores"][r], 1e-13);
}

// The rows of `ratings` with the items that ncf draws for each: word e of `stream(r)` at offset(r) picks one of the items not met.
template <class Stream, class Offset>
Dataset<double> with_negatives(const Dataset<double>& ratings, const std::vector<std::uint32_t>& rows, std::size_t negatives, Stream stream,
                               Offset offset) {
  Interactions met(ratings.vocabulary.num_users, ratings.num_items());
  met.add(ratings);
  std::vector<std::pair<int, int>> of;
  std::vector<double> targets;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto user = static_cast<std::size_t>(ratings.tokens[2 * rows[r]]);
    of.emplace_back(static_cast<int>(user), ratings.tokens[2 * rows[r] + 1] - static_cast<int>(ratings.vocabulary.num_users));
    targets.push_back(1);
    for (std::size_t e = 0; e < negatives; ++e) {
      const std::uint64_t word = stream(r).bits(offset(r) + e);
      const int item = met.unmet(user, static_cast<std::size_t>((word * met.num_unmet(user)) >> 32));
      EXPECT_FALSE(met.has_met(user, item));
      of.emplace_back(static_cast<int>(user), item);
      targets.push_back(0);
    }
  }
  return pairs<double>(ratings.vocabulary.num_users, ratings.num_items(), of, targets);
}

void expect_same_gradient(const Dataset<double>& ratings, const std::vector<std::uint32_t>& rows, const Dataset<double>& examples,
                          const RandomStream* random) {
  const auto ncf = make_model<double>("ncf", kSmall, ratings), network = small_network(examples);
  std::vector<double> x(ncf->layers().size());
  ncf->initial(3, x.data());
  for (double& v : x) v *= 10;
  double loss = 0, expected_loss = 0;
  const auto g = gradient_of(*ncf, x, rows, &loss, random);
  const auto expected = gradient_of(*network, x, checks::all_rows(examples.num_rows), &expected_loss);
  EXPECT_NEAR(loss, expected_loss, 1e-13);
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(g[j], expected[j], 1e-13) << j;
}

TEST(NcfTest, TheObjectiveHasFixedNegatives) {
  const auto ratings = checks::rating_rows<double>(checks::kModelRows, 5);
  const std::vector<std::uint32_t> rows{4, 30, 7, 7};
  const auto stream = [&](std::size_t r) { return RandomStream(hash64(0, static_cast<std::uint64_t>(Purpose::negatives)), rows[r], 0); };
  expect_same_gradient(ratings, rows, with_negatives(ratings, rows, 4, stream, [](std::size_t) { return std::size_t{0}; }), nullptr);
}

TEST(NcfTest, AMinibatchDrawsItsOwn) {
  const auto ratings = checks::rating_rows<double>(checks::kModelRows, 5);
  const std::vector<std::uint32_t> rows{4, 30, 7, 7};
  const RandomStream random(hash64(1, static_cast<std::uint64_t>(Purpose::inside_model)), 2, 3, 1);
  RandomStream drawn = random;
  drawn.step_layer |= 0xFFFE;
  const auto examples = with_negatives(
      ratings, rows, 4, [&](std::size_t) { return drawn; }, [](std::size_t r) { return 4 * r; });
  expect_same_gradient(ratings, rows, examples, &random);
  std::set<std::int32_t> items;  // of the row that is there twice
  for (std::size_t e = 11; e < 20; ++e)
    if (e != 15) items.insert(examples.tokens[2 * e + 1]);
  EXPECT_GT(items.size(), 1u);
}

// A test row's item was not met in training, and must not be drawn against itself: with two items left there is one to draw.
TEST(NcfTest, ATestRowsOwnItemIsNotDrawn) {
  const auto train = pairs<double>(1, 4, {{0, 0}, {0, 3}}, {1, 1}), test = pairs<double>(1, 4, {{0, 2}, {0, 1}}, {1, 1});
  const auto ncf = make_model<double>("ncf", kSmall, train);
  std::vector<double> x(ncf->layers().size());
  ncf->initial(3, x.data());
  for (double& v : x) v *= 10;
  const auto network = small_network(test);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  std::vector<double> z(2);
  network->outputs(exec, x.data(), test, checks::all_rows(2), z.data());
  const auto log1pexp = [](double v) { return std::log1p(std::exp(v)); };
  const double expected = (log1pexp(-z[0]) + 4 * log1pexp(z[1])) / 5;
  const std::vector<std::uint32_t> first{0};
  EXPECT_NEAR(ncf->loss_sum(exec, x.data(), test, first, nullptr), expected, 1e-14);
}

TEST(NcfTest, RefusesWhatHasNoItemsToDraw) {
  EXPECT_THROW(static_cast<void>(make_model<double>("ncf", kSmall, pairs<double>(1, 2, {{0, 0}, {0, 1}}, {1, 1}))), ConfigError);
  auto classes = checks::rating_rows<double>(checks::kModelRows, 5);
  classes.target.clear();
  EXPECT_THROW(static_cast<void>(make_model<double>("ncf", kSmall, classes)), ConfigError);
}

TEST(InteractionsTest, CountsWhatWasNotMet) {
  const auto ratings = pairs<double>(2, 6, {{0, 1}, {0, 4}, {0, 1}, {1, 0}, {1, 5}, {1, 2}}, {});
  Interactions met(2, 6);
  met.add(ratings);
  const auto unmet = [&met](std::size_t user) {
    std::vector<int> items;
    for (std::size_t k = 0; k < met.num_unmet(user); ++k) items.push_back(met.unmet(user, k));
    return items;
  };
  EXPECT_THAT(unmet(0), ::testing::ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(unmet(1), ::testing::ElementsAre(1, 3, 4));
  EXPECT_TRUE(met.has_met(0, 4));
  EXPECT_FALSE(met.has_met(1, 4));
}

}  // namespace
}  // namespace fl
