// Tests measures of federated learning: each one on a small example with a known answer, in a run that asks for it, and in no other run.
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "scenarios/measures/measure_statistics.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::run_text;
using test::ScenarioText;
using testing::DoubleNear;
using testing::HasSubstr;

// ---- formulas ------------------------------------------------------------------------------------------------------------------

TEST(Measures, PercentilesLieBetweenOrderStatistics) {
  const Spread five = spread_of({0.5, 0.1, 0.3, 0.2, 0.4});
  EXPECT_DOUBLE_EQ(five.mean, 0.3);
  EXPECT_DOUBLE_EQ(five.p10, 0.14);  // 0.4 of the way from the first to the second
  EXPECT_DOUBLE_EQ(five.p50, 0.3);
  EXPECT_DOUBLE_EQ(five.p90, 0.46);
  EXPECT_EQ(five.smallest, 0.1);
  EXPECT_DOUBLE_EQ(five.deviation, std::sqrt(0.02));
  const Spread one = spread_of({0.7});
  EXPECT_EQ(one.p10, 0.7);
  EXPECT_EQ(one.p90, 0.7);
  EXPECT_EQ(one.deviation, 0);
}

TEST(Measures, RanksBeyondTheTenthAreMisses) {
  const std::vector<std::size_t> ranks{1, 3, 10, 11};
  const RankingQuality quality = quality_of(ranks);
  EXPECT_DOUBLE_EQ(quality.hit_rate, 0.75);
  EXPECT_DOUBLE_EQ(quality.ndcg, (1 + 0.5 + std::numbers::ln2 / std::log(11.0)) / 4);
}

TEST(Measures, UpdatesThatDisagree) {
  ThreadPool pool(2);
  const std::vector<double> orthogonal{3, 0, 0, 3}, weights{0.5, 0.5};
  UpdateStatistics found = update_statistics(BatchView<const double>{orthogonal.data(), nullptr, 2, 2, 2}, weights, pool);
  EXPECT_DOUBLE_EQ(found.dissimilarity, 2);  // 9 / 4.5
  EXPECT_DOUBLE_EQ(found.variance, 4.5);
  // Alike, and longer than a piece: nothing is left of numbers that are far from zero.
  const std::vector<double> alike(3 * 5000, 1e6), thirds(3, 1.0 / 3);
  found = update_statistics(BatchView<const double>{alike.data(), nullptr, 3, 5000, 5000}, thirds, pool);
  EXPECT_NEAR(found.dissimilarity, 1, 1e-12);
  EXPECT_LT(found.variance, 1e-12);
}

// ---- updates and gradients -----------------------------------------------------------------------------------------------------

// One full local step moves client i by gamma grad f_i(x_0): its updates are as unlike as the gradients are.
TEST(Measures, OneLocalStepIsAGradient) {
  ScenarioText s = test::uneven_quadratics();
  s.rounds = 3;
  s.start = "kind = 'zero'\nshift = 0.7";
  s.evaluate = "every = 1\nupdates_every = 1\ngradient = 'every'";
  s.local = "kind = 'sgd'\nsteps = 1\nlearning_rate = 0.25";
  const auto steps = run_text(s.str()).at(0).rows;
  s.local = "kind = 'gradient'\nlearning_rate = 0.25";
  const auto gradients = run_text(s.str()).at(0).rows;
  EXPECT_TRUE(std::isnan(steps[0].update_dissimilarity) && std::isnan(steps[0].client_drift));
  ASSERT_GT(steps[0].zeta_sq, 0.01);
  for (std::size_t r = 1; r <= 3; ++r) {
    EXPECT_NEAR(steps[r].update_dissimilarity, steps[r - 1].gradient_dissimilarity, 1e-10 * steps[r].update_dissimilarity) << r;
    EXPECT_NEAR(steps[r].client_drift, 0.0625 * steps[r - 1].zeta_sq, 1e-10) << r;
    EXPECT_NEAR(steps[r - 1].gradient_dissimilarity, 1 + steps[r - 1].zeta_sq / steps[r - 1].global_grad_norm_sq, 1e-12);
    EXPECT_NEAR(gradients[r].update_dissimilarity, steps[r].update_dissimilarity, 1e-9 * steps[r].update_dissimilarity) << r;
    EXPECT_NEAR(gradients[r].client_drift, steps[r].client_drift, 1e-9) << r;
  }
}

// Every number of row r that speaks of a model speaks of x_r: here the gradient, from the clients' gradients one by one.
TEST(Measures, ARowSpeaksOfOneModel) {
  ScenarioText s = test::uneven_quadratics();
  s.rounds = 4;
  s.start = "kind = 'zero'\nshift = 0.7";
  s.local = "kind = 'gradient'\nlearning_rate = 0.25";
  s.evaluate = "every = 1\ngradient = 'every'";
  OneRun<double> run(s.str());
  const test::ClientGradients gradient(run);
  const std::vector<double>& w = run.problem().weights();
  std::size_t rows = 0;
  (void)run->run([&](const RoundRow& row) {
    test::Vector mean(run.problem().P(), 0.0);
    for (std::uint32_t i = 0; i < w.size(); ++i) test::add(w[i], gradient(run.model(), i), mean);
    const double norm_sq = test::distance_sq(mean, test::Vector(mean.size(), 0.0));
    EXPECT_NEAR(row.global_grad_norm_sq, norm_sq, 1e-12 * norm_sq) << row.round;
    EXPECT_DOUBLE_EQ(row.train_loss, run->evaluator().train_loss(run->model())) << row.round;
    ++rows;
    return true;
  });
  EXPECT_EQ(rows, 5u);
}

// A run that stops at a gradient's norm ends with the model that has it.
TEST(Measures, StopsWithTheModelWhoseGradientIsSmall) {
  ScenarioText s = test::uneven_quadratics();
  s.rounds = 60;
  s.start = "kind = 'zero'\nshift = 0.7";
  s.local = "kind = 'gradient'\nlearning_rate = 0.25";
  s.evaluate = "every = 1";
  const auto all = run_text(s.str()).at(0).rows;
  s.more = "[stop]\ngrad_norm_sq = " + std::to_string(0.5 * (all[3].global_grad_norm_sq + all[4].global_grad_norm_sq));
  const auto stopped = run_text(s.str()).at(0).rows;
  ASSERT_EQ(stopped.size(), 5u);
  EXPECT_EQ(stopped.back().global_grad_norm_sq, all[4].global_grad_norm_sq);
}

// Client i after two steps on x^T A_i x / 2 - <b_i, x>, by hand; its update is kept before any compression, and undivided by FedNova.
TEST(Measures, DriftIsOfTheClientsModels) {
  ScenarioText s = test::quadratics();
  s.rounds = 1;
  s.start = "kind = 'zero'\nshift = 0.5";
  s.local = "kind = 'sgd'\nsteps = 2\nlearning_rate = 0.25";
  s.up = "kind = 'top_k'\nk = 1";
  s.feedback = "kind = 'ef14'";
  s.evaluate = "every = 1\nupdates_every = 1";
  OneRun<double> run(s.str());
  const test::ClientGradients gradient(run);
  std::vector<test::Vector> models;
  test::Vector mean(run.problem().P(), 0.0);
  for (std::uint32_t i = 0; i < 5; ++i) {
    test::Vector& y = models.emplace_back(run.model());
    for (int step = 0; step < 2; ++step) test::add(-0.25, gradient(y, i), y);
    test::add(0.2, y, mean);
  }
  double drift = 0;
  for (const test::Vector& y : models) drift += 0.2 * test::distance_sq(y, mean);
  EXPECT_NEAR(run_text(s.str()).at(0).rows[1].client_drift, drift, 1e-12);
  s.server = "kind = 'sgd'\naverage = 'normalised'";
  EXPECT_NEAR(run_text(s.str()).at(0).rows[1].client_drift, drift, 1e-12);
}

ScenarioText small_network() {
  ScenarioText s = test::mushrooms(4);
  s.rounds = 6;
  s.precision = "float32";
  s.model = "kind = 'mlp'\nhidden = [5]";
  s.start = "kind = 'auto'";
  s.local = "kind = 'sgd'\nsteps = 3\nbatch = 16\nlearning_rate = 0.1";
  s.evaluate = "every = 1";
  return s;
}

// zeta^2 of a neural network at rounds of its choice, against the gradients of its clients one by one.
TEST(Measures, NeuralGradientsAtChosenRounds) {
  ScenarioText s = small_network();
  s.precision = "float64";
  s.evaluate = "every = 1\ngradient = 'every'\ngradient_every = 3";
  const auto rows = run_text(s.str()).at(0).rows;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool due = r % 3 == 0;
    EXPECT_EQ(std::isnan(rows[r].zeta_sq), !due) << r;
    EXPECT_EQ(std::isnan(rows[r].gradient_dissimilarity), !due) << r;
    EXPECT_EQ(std::isnan(rows[r].global_grad_norm_sq), !due) << r;
    EXPECT_FALSE(std::isnan(rows[r].train_loss)) << r;
  }
  OneRun<double> run(s.str());
  const test::ClientGradients gradient(run);
  const std::vector<double>& w = run.problem().weights();
  std::vector<test::Vector> g;
  test::Vector mean(run.problem().P(), 0.0);
  for (std::uint32_t i = 0; i < 4; ++i) test::add(w[i], g.emplace_back(gradient(run.model(), i)), mean);
  double zeta_sq = 0, squares = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    zeta_sq += w[i] * test::distance_sq(g[i], mean);
    squares += w[i] * test::norm_sq(g[i]);
  }
  ASSERT_GT(zeta_sq, 1e-3);
  EXPECT_THAT(rows[0].zeta_sq, DoubleNear(zeta_sq, 1e-12));
  EXPECT_NEAR(rows[0].gradient_dissimilarity, squares / test::norm_sq(mean), 1e-9);
}

// One number of each of two clients: the sum of absolute values is the absolute value. A step of 1/4 is a quarter of a gradient.
TEST(Measures, UpdateSizesAreMeansOfSumsOfAbsoluteValues) {
  ScenarioText s = test::quadratics("clients = 2\ndimension = 1\nzeta_sq = 1.0");
  s.partition = "kind = 'natural'\nclients = 2";
  s.rounds = 3;
  s.evaluate = "every = 1\nmeasure_every = 1\nmeasures = ['update_sizes']";
  s.local = "kind = 'gradient'\nlearning_rate = 0.25";
  const auto gradients = run_text(s.str()).at(0);
  s.local = "kind = 'sgd'\nsteps = 1\nlearning_rate = 0.25";
  const auto steps = run_text(s.str()).at(0);
  EXPECT_TRUE(gradients.record.columns.size() == 2 && std::isnan(gradients.rows[0].more[0]));
  for (std::size_t r = 1; r < gradients.rows.size(); ++r) {
    const std::vector<double>&of_gradient = gradients.rows[r].more, &of_step = steps.rows[r].more;
    EXPECT_NEAR(of_gradient[1], gradients.rows[r].grad_norm_sq, 1e-12);
    EXPECT_LT(of_gradient[0] * of_gradient[0], of_gradient[1]) << "the clients differ";
    EXPECT_NEAR(of_step[0], of_gradient[0] / 4, 1e-12);
    EXPECT_NEAR(of_step[1], of_gradient[1] / 16, 1e-12);
  }
}

TEST(Measures, ChangeNothingAndAreOnlyWhereAskedFor) {
  ScenarioText s = small_network();
  const auto plain = run_text(s.str()).at(0);
  s.evaluate = "every = 1\nclients_every = 4\nupdates_every = 5";
  const auto measured = run_text(s.str()).at(0), threads = run_text(s.str(), {.threads = 3, .block = 2}).at(0);
  EXPECT_EQ(plain.record.checksum, measured.record.checksum);
  for (std::size_t r = 0; r < plain.rows.size(); ++r) {
    EXPECT_TRUE(std::isnan(plain.rows[r].client_accuracy_p10) && std::isnan(plain.rows[r].client_drift));
    EXPECT_EQ(std::isnan(measured.rows[r].client_accuracy_p10), r % 4 != 0 && r != 6) << r;
    EXPECT_EQ(std::isnan(measured.rows[r].client_drift), r != 5 && r != 6) << r;
    EXPECT_EQ(plain.rows[r].train_loss, measured.rows[r].train_loss);
    EXPECT_TRUE(std::isnan(measured.rows[r].perplexity) && std::isnan(measured.rows[r].hit_rate_10));
  }
  for (const std::size_t r : {5u, 6u}) {
    EXPECT_EQ(measured.rows[r].client_drift, threads.rows[r].client_drift);
    EXPECT_EQ(measured.rows[r].update_dissimilarity, threads.rows[r].update_dissimilarity);
  }
}

// ---- clients -------------------------------------------------------------------------------------------------------------------

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(run_text(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kStep = "kind = 'sgd'\nlearning_rate = 0.1";

class MeasuresOfFiles : public test::DataFolderTest {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return "path = '" + (folder_ / name).string() + "'\n"; }
};

// At zero all scores are equal and the first class is said: a client is right about its rows of that class.
TEST_F(MeasuresOfFiles, AccuracyOfEachClient) {
  std::string csv = "a,label\n";
  for (int client = 0; client < 5; ++client)
    for (int row = 0; row < 4; ++row) csv += std::to_string(row) + (row < client ? ",no\n" : ",yes\n");
  write("train.csv", csv);
  ScenarioText s;
  s.rounds = 1;
  s.data = path("train.csv");
  s.partition = "kind = 'contiguous'\nclients = 5";
  s.model = "kind = 'mlp'\nhidden = []";
  s.local = "kind = 'sgd'\nlearning_rate = 1e-9";
  s.evaluate = "every = 1\nclients_every = 1";
  const RunResult result = run_text(s.str()).at(0);
  const RoundRow& start = result.rows[0];  // 0, 1/4, 1/2, 3/4, 1 of the rows say no
  EXPECT_DOUBLE_EQ(start.client_accuracy_mean, 0.5);
  EXPECT_DOUBLE_EQ(start.client_accuracy_p10, 0.1);
  EXPECT_DOUBLE_EQ(start.client_accuracy_p50, 0.5);
  EXPECT_DOUBLE_EQ(start.client_accuracy_p90, 0.9);
  EXPECT_DOUBLE_EQ(start.client_accuracy_worst, 0);
  EXPECT_DOUBLE_EQ(start.client_accuracy_deviation, std::sqrt(0.125));
  const auto on_test = std::ranges::find(result.record.constants, "client_accuracy_on_test_rows", &ResolvedConstant::name);
  ASSERT_NE(on_test, result.record.constants.end());
  EXPECT_EQ(on_test->value, 0);
}

TEST(Measures, AccuracyNeedsClasses) {
  ScenarioText s = test::quadratics();
  s.evaluate = "every = 1\nclients_every = 1\nranking_every = 1";
  const std::string why = refusal_of(s.str());
  EXPECT_THAT(why, HasSubstr("evaluate.clients_every"));
  EXPECT_THAT(why, HasSubstr("evaluate.ranking_every"));
}

// Noise is in the rows that a client sees, and so in the rows that it is judged on.
TEST(Measures, ClientsAreJudgedOnWhatTheySee) {
  ScenarioText s = test::mushrooms(4);
  s.data += "\nstorage = 'dense'";
  s.partition = "kind = 'feature_noise'\nclients = 4\nsigma = 1.0";
  OneRun<double> run(s.str());
  const ClientRows<double>& own = run.problem().client_rows();
  EXPECT_EQ(own.data, &run.problem().train());
  EXPECT_EQ(own.shards, run.problem().shards());
  EXPECT_FALSE(own.are_test_rows);
  double whole = 0;  // the file's features are 0 and 1
  for (std::size_t j = 0; j < own.data->num_features; ++j) whole += own.data->dense_row(own.shards[3][0])[j] == 1 ? 1 : 0;
  EXPECT_EQ(whole, 0);
}

// Users 1, 2 and 3 with two, three and one ratings.
constexpr const char* kRatings = "1\t10\t4\t1\n1\t20\t2\t2\n2\t10\t4\t1\n2\t20\t4\t2\n2\t30\t2\t3\n3\t30\t4\t1\n";

TEST_F(MeasuresOfFiles, ClientsKeepTheirTestRows) {
  write("u.data", kRatings);
  ScenarioText s;
  s.data = path("u.data") + "leave_one_out = true";
  s.model = "kind = 'neural_network'\nlayers = ['embedding(vocabulary, 2)', 'flatten', 'dense(classes)']";
  s.partition = "kind = 'natural'\nclients = 0";
  s.local = kStep;
  OneRun<double> natural(s.str());
  const ClientRows<double>& own = natural.problem().client_rows();
  EXPECT_TRUE(own.are_test_rows);
  EXPECT_EQ(own.data, natural.problem().test());
  EXPECT_THAT(own.shards, testing::ElementsAre(Shard{0}, Shard{1}));  // user 3 has no test row
  s.partition = "kind = 'by_group'\nclients = 2";
  OneRun<double> groups(s.str());
  std::size_t rows = 0;
  for (const Shard& shard : groups.problem().client_rows().shards) rows += shard.size();
  EXPECT_TRUE(groups.problem().client_rows().are_test_rows);
  EXPECT_EQ(rows, 2u);
  s.partition = "kind = 'contiguous'\nclients = 2";  // cuts user 2 in two
  OneRun<double> cut(s.str());
  EXPECT_FALSE(cut.problem().client_rows().are_test_rows);
  EXPECT_EQ(cut.problem().client_rows().shards, cut.problem().shards());
}

// ---- language ------------------------------------------------------------------------------------------------------------------

// At zero every next token is as likely as any other, whatever is asked of a row: perplexity is the size of the vocabulary.
TEST_F(MeasuresOfFiles, PerplexityOfAModelThatKnowsNothing) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "aab";
  write("input.txt", text + "c");
  ScenarioText s;
  s.rounds = 1;
  s.model = "kind = 'char_lstm'\nunits = 3";
  s.partition = "kind = 'contiguous'\nclients = 2";
  s.local = "kind = 'sgd'\nlearning_rate = 0.1";
  s.evaluate = "every = 1\nclients_every = 1";
  for (const char* positions : {"last", "every"}) {
    s.data = path("input.txt") + "sequence = 6\ntest_fraction = 0.35\nlabel_positions = '" + std::string(positions) + "'";
    const RoundRow start = run_text(s.str()).at(0).rows[0];
    EXPECT_NEAR(start.perplexity, 3, 1e-12) << positions;
    EXPECT_NEAR(start.test_loss, std::log(3.0), 1e-12) << positions;
    EXPECT_NEAR(start.train_loss, std::log(3.0), 1e-12) << positions;
    // "a" is said always: two of three tokens are, and what follows six of them is one that a triple begins with.
    EXPECT_NEAR(start.client_accuracy_mean, positions == std::string("every") ? 2.0 / 3 : 1, 1e-12) << positions;
    EXPECT_NEAR(start.client_accuracy_worst, start.client_accuracy_mean, 1e-12) << positions;
  }
}

// In "abcabc..." every character determines the next one, so every position can be learnt.
TEST_F(MeasuresOfFiles, EveryPositionIsLearnt) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abcd";
  write("input.txt", text);
  ScenarioText s;
  s.rounds = 40;
  s.precision = "float32";
  s.start = "kind = 'auto'";
  s.data = path("input.txt") + "sequence = 8\ntest_fraction = 0.2\nlabel_positions = 'every'";
  s.model = "kind = 'char_lstm'\nunits = 12\nlayers = 1";
  s.partition = "kind = 'contiguous'\nclients = 2";
  s.local = "kind = 'sgd'\nlearning_rate = 1.0\nsteps = 5";
  s.evaluate = "every = 40";
  const std::vector<RoundRow> rows = run_text(s.str()).at(0).rows;
  EXPECT_GT(rows.front().perplexity, 3);
  EXPECT_LT(rows.back().perplexity, 1.3);
  EXPECT_EQ(rows.back().test_accuracy, 1);
}

// ---- rankings ------------------------------------------------------------------------------------------------------------------

// One user has met items 0 .. 9 of 60 and is tested on one item, which is ranked among the other 49. An item's score is its number.
TEST_F(MeasuresOfFiles, RankOfAKnownItem) {
  const auto quality_with = [this](int test_item, const std::string& weights) {
    std::string ratings;
    for (int item = 0; item < 10; ++item) ratings += "1\t" + std::to_string(item) + "\t1\t" + std::to_string(item) + "\n";
    ratings += "1\t" + std::to_string(test_item) + "\t1\t99\n";
    for (int item = 0; item < 60; ++item) ratings += "2\t" + std::to_string(item) + "\t1\t1\n";  // so that every item is known
    std::string parameters = "0 0 ";  // vectors of users, of items, and how they count
    for (int item = 0; item < 60; ++item) parameters += std::to_string(item) + " ";
    write("u.data", ratings);
    write("start.txt", parameters + weights);
    ScenarioText s;
    s.rounds = 1;
    s.data = path("u.data") + "leave_one_out = true\nlabels = 'target'";
    s.partition = "kind = 'natural'\nclients = 0";
    s.model = "kind = 'neural_network'\nloss = 'squared_error'\nlayers = ['embedding(vocabulary, 1)', 'flatten', 'dense(1, bias=false)']";
    s.start = "kind = 'file'\n" + path("start.txt");
    s.local = kStep;
    s.evaluate = "every = 1\nranking_every = 1";
    return run_text(s.str()).at(0).rows[0];
  };
  // Test rows: user 1's item among 49, and user 2's latest, which has no item left to be ranked among: its rank is 1.
  const RoundRow tenth = quality_with(50, "0 1");
  EXPECT_DOUBLE_EQ(tenth.hit_rate_10, 1);
  EXPECT_DOUBLE_EQ(tenth.ndcg_10, (1 + std::numbers::ln2 / std::log(11.0)) / 2);
  const RoundRow eleventh = quality_with(49, "0 1");
  EXPECT_DOUBLE_EQ(eleventh.hit_rate_10, 0.5);
  EXPECT_DOUBLE_EQ(eleventh.ndcg_10, 0.5);
  EXPECT_DOUBLE_EQ(quality_with(57, "0 -1").hit_rate_10, 0.5);
  EXPECT_DOUBLE_EQ(quality_with(57, "1 0").hit_rate_10, 0.5);  // all scores equal: nothing was found
}

TEST_F(MeasuresOfFiles, RankedAgainst99ThatWereNotMet) {
  std::string ratings;
  for (int user = 0; user < 3; ++user)
    for (int item = 0; item < 300; ++item)
      if ((item + user) % 4 == 0) ratings += std::to_string(user) + "\t" + std::to_string(item) + "\t1\t" + std::to_string(item) + "\n";
  write("u.data", ratings);
  FileDataOptions options{.name = (folder_ / "u.data").string(), .labels = LabelKind::target};
  options.formats.ratings.leave_one_out = true;
  const auto data = load(options);
  const RankingTask<double> task(data.train, *data.test, 1), again(data.train, *data.test, 1), other(data.train, *data.test, 2);
  const auto tokens = [](const RankingTask<double>& of) {
    return std::vector<std::int32_t>(of.candidates().tokens.begin(), of.candidates().tokens.end());
  };
  EXPECT_EQ(tokens(task), tokens(again));
  EXPECT_NE(tokens(task), tokens(other));
  ASSERT_EQ(task.begins().size(), 4u);
  for (std::size_t row = 0; row < 3; ++row) {
    const std::size_t first = task.begins()[row], count = task.begins()[row + 1] - first;
    const std::size_t items = data.train.num_items();
    const std::size_t met = 1 + data.train.client_begin[row + 1] - data.train.client_begin[row];
    EXPECT_EQ(count, 1 + std::min<std::size_t>(99, items - met));
    std::vector<std::int32_t> met_items{data.test->tokens[2 * row + 1]}, drawn;
    for (std::size_t r = data.train.client_begin[row]; r < data.train.client_begin[row + 1]; ++r)
      met_items.push_back(data.train.tokens[2 * r + 1]);
    EXPECT_EQ(task.candidates().tokens[2 * first + 1], met_items.front());
    for (std::size_t c = first + 1; c < first + count; ++c) {
      EXPECT_EQ(task.candidates().tokens[2 * c], static_cast<std::int32_t>(row));
      drawn.push_back(task.candidates().tokens[2 * c + 1]);
      EXPECT_EQ(std::ranges::count(met_items, drawn.back()), 0);
    }
    std::ranges::sort(drawn);
    EXPECT_TRUE(std::ranges::adjacent_find(drawn) == drawn.end());
  }
}

// Users of four tastes, each of whom has met ten of the fifteen items of its own: one more of these is what it is tested on.
TEST_F(MeasuresOfFiles, NcfLearnsTastes) {
  FL_ONLY_ARITHMETIC();
  std::string ratings;
  for (int user = 0; user < 24; ++user)
    for (int k = 0; k < 11; ++k) {
      const int item = 15 * (user % 4) + (user / 4 + (k * 4)) % 15;
      ratings += std::to_string(user) + "\t" + std::to_string(item) + "\t5\t" + std::to_string(k) + "\n";
    }
  write("u.data", ratings);
  ScenarioText s;
  s.rounds = 60;
  s.precision = "float32";
  s.start = "kind = 'auto'";
  s.data = path("u.data") + "leave_one_out = true\nlabels = 'target'";
  s.partition = "kind = 'by_group'\nclients = 6";
  s.model = "kind = 'ncf'";
  s.local = "kind = 'sgd'\nlearning_rate = 1.0\nepochs = 5\nbatch = 8";
  s.evaluate = "every = 60\nranking_every = 60";
  const std::vector<RoundRow> rows = run_text(s.str()).at(0).rows;
  EXPECT_LT(rows.front().hit_rate_10, 0.5);
  EXPECT_GT(rows.back().hit_rate_10, 0.9);
  EXPECT_GT(rows.back().ndcg_10, rows.front().ndcg_10);
  EXPECT_TRUE(std::isnan(rows.back().test_accuracy));
  EXPECT_LT(rows.back().train_loss, rows.front().train_loss);
}

TEST_F(MeasuresOfFiles, RankingNeedsOneScore) {
  write("u.data", kRatings);
  ScenarioText s;
  s.data = path("u.data") + "leave_one_out = true";
  s.partition = "kind = 'natural'\nclients = 0";
  s.model = "kind = 'neural_network'\nlayers = ['embedding(vocabulary, 2)', 'flatten', 'dense(classes)']";
  s.evaluate = "ranking_every = 1";
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  EXPECT_THAT(refusal_of(s.str()), HasSubstr("a model with one score for a row"));
  s.model = "kind = 'ncf'";
  EXPECT_THAT(refusal_of(s.str()), HasSubstr("set data.labels = \"target\""));
}

}  // namespace
}  // namespace fl
