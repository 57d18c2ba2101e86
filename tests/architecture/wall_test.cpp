// The wall between server and clients: every method runs as two halves, of which each is built without the other's state and hears of the
// other in bytes alone, and takes the bytes of the plain run: models, bits, client state, the server's state and what both share.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "fl_core/registry.hpp"
#include "tests/architecture/halves.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kWallRounds = 14;

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The slots of both halves against those of a run in which nothing is apart.
template <class T>
void expect_same_slots(Experiment<T>& plain, test::ClientHalf<T>& clients, test::ServerHalf<T>& server) {
  std::vector<SlotSpec> slots = clients.method().plan.slots;
  const std::vector<SlotSpec> of_local = clients.method().local->slots();
  slots.insert(slots.end(), of_local.begin(), of_local.end());
  const auto N = static_cast<std::uint32_t>(plain.clients().num_clients());
  for (const SlotSpec& slot : slots) {
    if (slot.owner == SlotOwner::server) {
      EXPECT_TRUE(same_bytes<double>(plain.state().slot(slot.name), server.state().slot(slot.name))) << slot.name;
    }
    for (std::uint32_t client = 0; client < N; ++client) {
      if (slot.owner == SlotOwner::client) {
        EXPECT_TRUE(same_bytes<T>(plain.clients().of_client(slot.name, client), clients.state().of_client(slot.name, client)))
            << slot.name << " of client " << client;
      }
      if (slot.owner == SlotOwner::server_copy) {
        EXPECT_TRUE(same_bytes<T>(plain.state().copy(slot.name, client), server.state().copy(slot.name, client)))
            << slot.name << " of client " << client;
      }
    }
  }
  for (const SlotSpec& slot : plain.shared().specs()) {
    EXPECT_TRUE(same_bytes<T>(plain.shared().slot(slot.name), server.shared().slot(slot.name))) << slot.name;
    if (slot.sync == SlotSync::broadcast) continue;  // the clients' replica is that of the last opening
    EXPECT_TRUE(same_bytes<T>(plain.shared().slot(slot.name), clients.shared().slot(slot.name))) << slot.name << " of the clients";
  }
}

template <class T>
void expect_the_plain_run(const std::string& text) {
  const Scenario scenario = parse_cells(text, "test.toml").at(0).scenario;
  test::OneRun<T> plain(text);
  const std::size_t M = plain->round().plan().cohort.size();  // none yet
  ASSERT_EQ(M, 0U);
  test::ClientHalf<T> clients(scenario, plain.problem(), plain.problem().shards().size());
  test::ServerHalf<T> server(scenario, plain.problem(), clients, plain->step_size(), plain.model());
  for (std::uint32_t round = 1; round <= kWallRounds; ++round) {
    plain.play(round, round);
    server.play(round);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ASSERT_TRUE(same_bytes<T>(plain->model(), server.model())) << "the models of round " << round;
  }
  EXPECT_EQ(plain->round().ledger().total_up().bits, server.ledger().total_up().bits);
  EXPECT_EQ(plain->round().ledger().total_down_bits(), server.ledger().total_down_bits());
  expect_same_slots(*plain, clients, server);
}

class Wall : public testing::TestWithParam<test::Method> {};

TEST_P(Wall, HalvesWithoutEachOthersStateTakeTheBytesOfThePlainRun) {
  expect_the_plain_run<float>(test::text_of(GetParam(), "float32"));
  expect_the_plain_run<double>(test::text_of(GetParam(), "float64"));
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, Wall, testing::ValuesIn(test::methods()), [](const auto& one) { return one.param.label; });

// Sampled clients: those who missed rounds are sent what they did not derive.
TEST_P(Wall, SampledClientsTakeTheBytesOfThePlainRun) {
  static const std::set<std::string> everyone = {"marina", "dasha"};
  test::Method method = GetParam();
  if (method.more.find("[participation]") == std::string::npos) method.more += "[participation]\nkind = 'uniform'\nclients = 3\n";
  if (everyone.contains(method.label)) {
    EXPECT_THROW(expect_the_plain_run<float>(test::text_of(method, "float32")), ConfigError);
    return;
  }
  expect_the_plain_run<float>(test::text_of(method, "float32"));
}

// What becomes of the error memory of absent clients is settled by clients; the server knows whom it heard, and what it tells them.
class WallOfAbsence : public testing::TestWithParam<std::string> {};

TEST_P(WallOfAbsence, HalvesTakeTheBytesOfThePlainRun) {
  test::Method method = test::methods().at(1);
  ASSERT_EQ(method.label, "ef14");
  method.more = "[participation]\nkind = 'uniform'\nclients = 2\n" + GetParam();
  expect_the_plain_run<float>(test::text_of(method, "float32"));
  expect_the_plain_run<double>(test::text_of(method, "float64"));
}

INSTANTIATE_TEST_SUITE_P(Rules, WallOfAbsence,
                         testing::Values("absent = 'keep'\n", "absent = 'decay'\nabsent_decay = 0.5\n", "absent = 'drop'\n",
                                         "absent = 'server'\n"));

// A new feedback or local update passes through the wall too: it needs a line in tests/support/every_method.hpp.
TEST(WallCovers, EveryFeedbackAndLocalUpdate) {
  std::set<std::string> feedbacks, local_updates;
  for (const test::Method& method : test::methods()) {
    const Scenario scenario = parse_cells(test::text_of(method, "float32"), "test.toml").at(0).scenario;
    feedbacks.insert(scenario.feedback_up.kind);
    local_updates.insert(scenario.local.kind);
  }
  for (const std::string& name : Registry::instance().names("feedback")) EXPECT_TRUE(feedbacks.contains(name)) << name;
  for (const std::string& name : Registry::instance().names("local_update")) EXPECT_TRUE(local_updates.contains(name)) << name;
}

}  // namespace
}  // namespace fl
