// Tests rounds that are open at the same time, in a process of clients without a server: messages are values, and each round has places of
// its own in the clients' state.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

// The clients of a scenario, whose rounds a test orders.
class Clients {
 public:
  Clients(const std::string& text, bool sends_bytes)
      : cell_(parse_cells(text, "test.toml").at(0)),
        pool_(2),
        problem_(cell_.scenario, DataCatalog(""), pool_),
        method_(make_method<double>(cell_.scenario, problem_.layers(), problem_.shards().size(), Device::cpu)),
        run_(run_settings(cell_.scenario, method_, problem_)),
        shared_(run_.P) {
    declare_slots<double>(method_, run_, {.shared = &shared_});
    side_ = std::make_unique<ClientSide<double>>(cell_.scenario, problem_, method_, run_, SharedReplica<double>{shared_, true},
                                                 CohortSizes{.most = 3, .likely = 3, .waves = 2}, ClientPlace{.materialise = sends_bytes},
                                                 pool_);
    if (method_.local->traits().needs_optimum) side_->prepare(problem_.optimum(cell_.scenario.evaluate.optimum).x);
  }

  // Returns the order of a round. Its model depends on the round.
  [[nodiscard]] RoundOrder order(std::uint32_t round, std::vector<std::uint32_t> cohort) const {
    return {.round = round, .step_size = 0.05, .server_step = 0.05, .coin = round == 1, .cohort = std::move(cohort)};
  }
  void open(const RoundOrder& order) {
    const std::vector<double> replacement(run_.P);
    const std::vector<double> model = model_of(order.round);
    side_->clients().open_round({run_, order, model}, {.replacement = replacement});
  }
  [[nodiscard]] MessageBatch<double> exchange(const RoundOrder& order) {
    const std::vector<double> model = model_of(order.round);
    return side_->clients().exchange({run_, order, model}, 0);
  }
  void close(const RoundOrder& order, bool arrived = true) {
    const std::vector<double> model = model_of(order.round);
    side_->clients().close_round({run_, order, model}, std::vector<std::uint8_t>(order.cohort.size(), arrived ? 1 : 0));
  }

  [[nodiscard]] const SharedState<double>& shared() const { return shared_; }
  [[nodiscard]] const Exchange<double>& channels() const { return method_.exchange; }
  // Returns the state of all clients as bytes.
  [[nodiscard]] std::vector<std::byte> state() {
    Archive archive;
    side_->clients().persist(archive);
    return archive.bytes();
  }

 private:
  [[nodiscard]] std::vector<double> model_of(std::uint32_t round) const {
    std::vector<double> model(run_.P);
    for (std::size_t j = 0; j < model.size(); ++j) model[j] = 0.01 * static_cast<double>(round) * static_cast<double>(j % 7);
    return model;
  }

  Cell cell_;
  ThreadPool pool_;
  FederatedProblem<double> problem_;
  RunMethod<double> method_;
  RunSettings run_;
  SharedState<double> shared_;
  std::unique_ptr<ClientSide<double>> side_;
};

// Returns everything that a batch says, as text.
std::string text_of(const MessageBatch<double>& batch) {
  std::string text;
  const auto add = [&text](const auto& numbers) {
    text.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0]));
    text += '|';
  };
  for (const ClientMessage<double>& message : batch.messages) {
    text += std::to_string(message.client) + ":" + std::to_string(message.bits.bits) + (message.refused ? "refused" : "");
    add(message.encoded);
  }
  for (const auto& channel : batch.contents)
    for (const Payload<double>* content : channel) {
      text += content == nullptr ? "inactive" : content->silent ? "silent" : "says";
      if (content == nullptr) continue;
      add(content->value);
      add(content->index);
      add(content->level_bytes);
    }
  for (const std::span<const double> averaged : batch.averaged) add(averaged);
  return text;
}

class Waves : public testing::TestWithParam<test::Method> {};

TEST_P(Waves, ALateMessageSurvivesTheNextRounds) {
  for (const bool sends_bytes : {false, true}) {
    Clients clients(test::text_of(GetParam(), "float64"), sends_bytes);
    const RoundOrder first = clients.order(1, {0, 1, 4});
    clients.open(first);
    const MessageBatch<double> late = clients.exchange(first);
    const std::string before = text_of(late);
    EXPECT_GT(before.size(), 20U);
    clients.close(first);
    for (std::uint32_t round = 2; round < 5; ++round) {
      const RoundOrder next = clients.order(round, {0, 1, 5});
      clients.open(next);
      EXPECT_NE(text_of(clients.exchange(next)), before) << "round " << round;
      clients.close(next);
    }
    EXPECT_EQ(text_of(late), before) << (sends_bytes ? "bytes" : "contents");
  }
}

// Clients of two rounds that overlap send what they send in rounds one after the other, and keep the same state. What all clients share
// moves with every round, so that methods with such slots have another state where rounds overlap.
TEST_P(Waves, TwoRoundsThatOverlapDoNotMeet) {
  const std::string text = test::text_of(GetParam(), "float64");
  Clients apart(text, false), overlapping(text, false);
  if (!apart.shared().specs().empty()) GTEST_SKIP() << "its clients share slots";
  const RoundOrder first = apart.order(1, {0, 3}), second = apart.order(2, {1, 2, 5}), third = apart.order(3, {0, 2, 4});
  std::vector<std::string> sent;
  for (const RoundOrder* order : {&first, &second, &third}) {
    apart.open(*order);
    sent.push_back(text_of(apart.exchange(*order)));
    apart.close(*order);
  }
  overlapping.open(first);
  overlapping.open(second);
  const MessageBatch<double> of_second = overlapping.exchange(second), of_first = overlapping.exchange(first);
  EXPECT_EQ(text_of(of_first), sent[0]);
  EXPECT_EQ(text_of(of_second), sent[1]);
  overlapping.close(second);
  overlapping.close(first);
  overlapping.open(third);
  EXPECT_EQ(text_of(overlapping.exchange(third)), sent[2]);
  overlapping.close(third);
  EXPECT_EQ(overlapping.state(), apart.state());
}

std::vector<test::Method> methods_of_one_phase() {
  std::vector<test::Method> methods = test::methods();
  std::erase_if(methods, [](const test::Method& method) { return method.up.find("powersgd") != std::string::npos; });
  return methods;
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, Waves, testing::ValuesIn(methods_of_one_phase()), [](const auto& one) { return one.param.label; });

// The round that is given up sends nothing that counts: its clients keep the state that they had.
TEST(WavesOfClients, AThirdRoundTakesThePlaceOfTheOldest) {
  const auto is_ef14 = [](const test::Method& method) { return method.label == "ef14"; };
  const std::vector<test::Method> methods = test::methods();
  const std::string text = test::text_of(*std::ranges::find_if(methods, is_ef14), "float64");
  Clients clients(text, false), without(text, false);
  const RoundOrder first = clients.order(1, {0, 3}), second = clients.order(2, {1, 2}), third = clients.order(3, {4, 5});
  for (const RoundOrder* order : {&first, &second, &third}) {
    clients.open(*order);
    static_cast<void>(clients.exchange(*order));
  }
  EXPECT_THROW(clients.close(first), Error);
  clients.close(second);
  clients.close(third);
  for (const RoundOrder* order : {&second, &third}) {
    without.open(*order);
    static_cast<void>(without.exchange(*order));
    without.close(*order);
  }
  EXPECT_EQ(clients.state(), without.state());
}

// The vectors of a local optimizer and its count of steps are those of the messages that arrived.
TEST(WavesOfClients, LostMessagesLeaveTheOptimizerAsItWas) {
  const auto keeps_vectors = [](const test::Method& method) { return method.label == "adamw_of_clients"; };
  const std::vector<test::Method> methods = test::methods();
  const std::string text = test::text_of(*std::ranges::find_if(methods, keeps_vectors), "float64");
  Clients lossy(text, false), exact(text, false), forgetful(text, false);
  const RoundOrder first = lossy.order(1, {0, 3}), lost = lossy.order(2, {0, 3, 4}), last = lossy.order(3, {0, 3, 4});
  for (Clients* clients : {&lossy, &exact}) {
    clients->open(first);
    static_cast<void>(clients->exchange(first));
    clients->close(first);
  }
  const std::vector<std::byte> before = lossy.state();
  lossy.open(lost);
  static_cast<void>(lossy.exchange(lost));
  lossy.close(lost, false);
  EXPECT_EQ(lossy.state(), before);
  std::vector<std::string> sent;
  for (Clients* clients : {&lossy, &exact, &forgetful}) {
    clients->open(last);
    sent.push_back(text_of(clients->exchange(last)));
    clients->close(last);
  }
  EXPECT_EQ(sent[0], sent[1]);
  EXPECT_NE(sent[0], sent[2]) << "the first round counts";
  EXPECT_EQ(lossy.state(), exact.state());
}

}  // namespace
}  // namespace fl
