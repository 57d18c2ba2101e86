// Compares LAG with its published rule, upload by upload. The source minimises sum_m L_m and lets worker m be silent while
//   |grad L_m(w) - grad L_m(last)|^2 <= xi / (alpha^2 M^2) sum_{d=1..D} |w_{r+1-d} - w_{r-d}|^2,      w <- w - alpha sum_m grad L_m(last).
// L_m = w_m f_m here, and alpha is the step of the model: the clients' step size times the server's learning rate.
#include <gtest/gtest.h>

#include <deque>

#include "fl_core/config/registry.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::add;
using test::ClientGradients;
using test::distance_sq;
using test::norm_sq;
using test::OneRun;
using test::relative_distance;
using test::ScenarioText;
using test::Vector;

// The published method, in its own letters.
class PublishedLag {
 public:
  PublishedLag(OneRun<double>& run, double alpha, double xi, std::size_t D) : alpha_(alpha), xi_(xi), D_(D), x_(run.model()) {}

  // Returns who uploads in the next round.
  std::vector<bool> step(const ClientGradients& gradient, const std::vector<double>& weights) {
    const auto M = static_cast<double>(weights.size());
    last_.resize(weights.size(), Vector(x_.size(), 0.0));
    double moved = 0;
    for (const double m : moved_) moved += m;
    std::vector<bool> uploads;
    for (std::uint32_t m = 0; m < weights.size(); ++m) {
      Vector fresh(x_.size(), 0.0);
      add(weights[m], gradient(x_, m), fresh);
      uploads.push_back(distance_sq(fresh, last_[m]) > xi_ / (alpha_ * alpha_ * M * M) * moved);
      if (uploads.back()) last_[m] = fresh;
    }
    Vector sum(x_.size(), 0.0);
    for (const Vector& g : last_) add(1, g, sum);
    add(-alpha_, sum, x_);
    moved_.push_front(alpha_ * alpha_ * norm_sq(sum));
    if (moved_.size() > D_) moved_.pop_back();
    return uploads;
  }
  [[nodiscard]] const Vector& model() const { return x_; }

 private:
  double alpha_, xi_;
  std::size_t D_;
  Vector x_;
  std::vector<Vector> last_;
  std::deque<double> moved_;
};

struct Uploads {
  std::size_t sent = 0, silent = 0;
};

// Plays both and compares them in every round.
Uploads compare(const ScenarioText& scenario, double server_rate, double xi, std::size_t D, std::uint32_t rounds) {
  OneRun<double> run(scenario.str());
  const ClientGradients gradient(run);
  PublishedLag published(run, run->step_size() * server_rate, xi, D);
  Uploads uploads;
  for (std::uint32_t r = 1; r <= rounds; ++r) {
    const std::vector<bool> expected = published.step(gradient, run.problem().weights());
    run.play(r, r);
    for (std::uint32_t m = 0; m < expected.size(); ++m) {
      EXPECT_EQ(!run->runner().payload(0, m)->silent, expected[m]) << "client " << m << " in round " << r;
      (expected[m] ? uploads.sent : uploads.silent)++;
    }
    EXPECT_LE(relative_distance(run.model(), published.model()), 1e-11) << "round " << r;
    if (testing::Test::HasFailure()) break;
  }
  return uploads;
}

ScenarioText a9a(const std::string& partition) {
  ScenarioText s;
  s.rounds = 300;
  s.data = "name = 'libsvm/a9a'\nrows = 8000\ntest = 'none'";
  s.partition = partition;
  s.model = "kind = 'logistic_regression'\nbias = false\nl2 = 0.001";
  s.feedback = "kind = 'lag'\nxi = 0.1\nmemory = 10";
  return s;
}

// NumPy counts 309 uploads of 6,000 under the published rule (it compares gradients of w_m f_m), 1,282 if those of f_m are compared.
TEST(Lag, SendsOnA9aWhatThePublishedRuleSends) {
  FL_NEED_DATA(folder, "libsvm/a9a");
  EXPECT_EQ(compare(a9a("kind = 'contiguous'\nclients = 20"), 1, 0.1, 10, 300).sent, 309u);
}

TEST(Lag, SendsOnA9aWhatThePublishedRuleSendsForClientsOfUnequalSizes) {
  FL_NEED_DATA(folder, "libsvm/a9a");
  ScenarioText s = a9a("kind = 'quantity_skew'\nbeta = 0.5\nclients = 20");
  s.server = "kind = 'sgd'\nlearning_rate = 0.5";
  const Uploads uploads = compare(s, 0.5, 0.1, 10, 100);
  EXPECT_GT(uploads.sent, 50u);
  EXPECT_GT(uploads.silent, 50u);
}

// Weights 3/11, 3/11, 3/11, 2/11, and a server whose learning rate is not 1.
TEST(Lag, TriggersByTheWeightAndTheStepOfTheModel) {
  for (const double rate : {1.0, 0.5, 2.0}) {
    ScenarioText s = test::problem("kind = 'lag'\nxi = 0.1\nmemory = 3");
    s.local = "kind = 'gradient'\nlearning_rate = 0.2";
    s.up = "kind = 'identity'";
    s.server = "kind = 'sgd'\nlearning_rate = " + std::to_string(rate);
    const Uploads uploads = compare(s, rate, 0.1, 3, 60);
    EXPECT_GT(uploads.sent, 20u) << rate;
    EXPECT_GT(uploads.silent, 20u) << rate;
  }
}

// The trigger has no step length for other servers.
TEST(Lag, RefusesServersThatTakeOtherSteps) {
  for (const std::string server : {"kind = 'sgd'\nmomentum = 0.9", "kind = 'sgd'\nweight_decay = 0.1", "kind = 'sgd'\nnesterov = 'code'",
                                   "kind = 'adam'", "kind = 'sign_sgd'"}) {
    ScenarioText s = test::problem("kind = 'lag'");
    s.local = "kind = 'gradient'\nlearning_rate = 0.2";
    s.up = "kind = 'identity'";
    s.server = server;
    try {
      OneRun<double> run(s.str());
      FAIL() << server << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("server.kind: lag needs to know the length of the server's step"), std::string::npos)
          << error.what();
    }
  }
}

// A client of weight 0 has no part in the sum: nothing that it holds is worth a message, in the first round either.
TEST(Lag, AClientOfWeightZeroIsSilent) {
  const auto lag = make_part<Feedback<double>>("feedback", "lag", Registry::instance().default_options("feedback", "lag"), Device::cpu,
                                               Precision::float64);
  constexpr std::size_t kP = 2;
  ClientState<double> clients(2, 2, kP);
  SharedState<double> shared(kP);
  for (const SlotSpec& slot : lag->plan().slots) {
    if (slot.owner == SlotOwner::client) clients.declare(slot);
    if (slot.owner == SlotOwner::shared) shared.declare(slot);
  }
  RunSettings run;
  run.num_clients = 2;
  run.P = kP;
  run.weights = {0.0, 1.0};
  const RoundOrder order{.round = 1, .server_step = 0.1, .cohort = {0, 1}};
  clients.open_round(order.cohort);
  const std::vector<double> reference = {0.0, 0.0};
  std::vector<double> g = {1, 2, 3, 4};
  const ClientRound<double> round{{run, order, reference}, clients, shared};
  lag->derive(round, shared);
  std::vector<Payload<double>> messages(2);
  std::vector<Payload<double>*> pointers = {&messages[0], &messages[1]};
  std::vector<double> work = {1, 1};
  ClientBlock<double> block{0, 2, order.cohort, {{g.data(), nullptr, 2, kP, kP}}, {pointers}, work};
  const Exec exec;
  const Send<double> send = lag->prepare(exec, round, block, 0);
  lag->after_compress(exec, round, block, 0, send, Exchange<double>{});
  EXPECT_TRUE(messages[0].silent);
  EXPECT_FALSE(messages[1].silent);
}

}  // namespace
}  // namespace fl
