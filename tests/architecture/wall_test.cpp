// Tests the separation of server and clients. Every method runs as two halves, each built without the state of the other half and receiving
// only bytes from it. The result has the bytes of the plain run: models, bits, client state, the server's state and the shared state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include "fl_core/config/registry.hpp"
#include "fl_core/round/kept_parameters.hpp"
#include "tests/architecture/halves.hpp"
#include "tests/golden/statistics_study.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/overflowing.hpp"
#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kWallRounds = 14;

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A client's row as bytes, wherever it lies; "" where all of it is zero.
template <class T>
std::string row_of(ClientState<T>& state, const std::string& slot, std::uint32_t client) {
  const std::span<const T> row = state.peek(slot, client);
  const bool is_zero =
      std::ranges::all_of(row, [](T x) { return std::bit_cast<std::array<char, sizeof(T)>>(x) == std::array<char, sizeof(T)>{}; });
  return is_zero ? "" : std::string(reinterpret_cast<const char*>(row.data()), row.size_bytes());
}

// Returns the model without the parameters that clients keep: the server holds their mean there, which measures alone read.
template <class T>
std::vector<T> weights_of(std::span<const T> model, const RunSettings& run) {
  std::vector<T> weights(model.begin(), model.end());
  clear_ranges(run.kinds.kept, weights.data());
  return weights;
}

// The slots of both halves against those of a run in which nothing is apart.
template <class T>
void expect_same_slots(Experiment<T>& plain, test::ClientHalf<T>& clients, test::ServerHalf<T>& server) {
  std::vector<SlotSpec> slots = clients.method().plan.slots;
  const std::vector<SlotSpec> of_local = clients.method().local->slots();
  slots.insert(slots.end(), of_local.begin(), of_local.end());
  if (!server.run().kinds.kept.empty()) slots.push_back({.name = kKeptValues, .owner = SlotOwner::client});
  const auto N = static_cast<std::uint32_t>(plain.clients().num_clients());
  for (const SlotSpec& slot : slots) {
    if (slot.owner == SlotOwner::server) {
      EXPECT_TRUE(same_bytes<double>(plain.state().slot(slot.name), server.state().slot(slot.name))) << slot.name;
    }
    for (std::uint32_t client = 0; client < N; ++client) {
      if (slot.owner == SlotOwner::client) {
        EXPECT_EQ(row_of(plain.clients(), slot.name, client), row_of(clients.state(), slot.name, client))
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

// Events that a test requires in the compared rounds.
struct Seen {
  std::size_t skipped = 0, refused = 0;  // rounds, messages
};

// Options of the clients' half: the size of its cohorts, 0 = all clients, and the memory for their state.
struct ClientsMemory {
  std::size_t cohort = 0;
  StatePaging paging{};
};

template <class T>
Seen expect_the_plain_run(const std::string& text, const ClientsMemory& memory = {}) {
  Seen seen;
  const Scenario scenario = parse_cells(text, "test.toml").at(0).scenario;
  test::OneRun<T> plain(text);
  const std::vector<T> start = plain.model();
  test::ClientHalf<T> clients(scenario, plain.problem(), memory.cohort > 0 ? memory.cohort : plain.problem().shards().size(),
                              memory.paging);
  EXPECT_EQ(clients.state().reads_ahead(), memory.paging.memory_bytes > 0) << "rows in a file";
  test::ServerHalf<T> server(scenario, plain.problem(), clients, plain->step_size(), start);
  for (std::uint32_t round = 1; round <= kWallRounds; ++round) {
    plain.play(round, round);
    server.play(round);
    EXPECT_FALSE(testing::Test::HasFailure()) << "round " << round;
    if (testing::Test::HasFailure()) return seen;
    EXPECT_TRUE(same_bytes<T>(weights_of<T>(plain.model(), server.run()), weights_of<T>(server.model(), server.run())))
        << "the models of round " << round;
    EXPECT_EQ(plain->round().refused(), server.round().refused()) << "round " << round;
    seen.skipped += server.round().plan().cohort.empty() ? 1 : 0;
    seen.refused += server.round().refused();
  }
  EXPECT_EQ(plain->round().ledger().total_up().bits, server.ledger().total_up().bits);
  EXPECT_EQ(plain->round().ledger().total_down_bits(), server.ledger().total_down_bits());
  expect_same_slots(*plain, clients, server);
  return seen;
}

class Wall : public testing::TestWithParam<test::Method> {};

TEST_P(Wall, HalvesWithoutEachOthersStateTakeTheBytesOfThePlainRun) {
  expect_the_plain_run<float>(test::text_of(GetParam(), "float32"));
  expect_the_plain_run<double>(test::text_of(GetParam(), "float64"));
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, Wall, testing::ValuesIn(test::methods()), [](const auto& one) { return one.param.label; });

// Sampled clients: those who missed rounds are sent what they did not derive.
TEST_P(Wall, SampledClientsTakeTheBytesOfThePlainRun) {
  test::Method method = GetParam();
  if (method.more.find("[participation]") == std::string::npos) method.more += "[participation]\nkind = 'uniform'\nclients = 3\n";
  if (test::fitting_study(test::kind_of(method.feedback)).every_client) {
    EXPECT_THROW(expect_the_plain_run<float>(test::text_of(method, "float32")), ConfigError);
    return;
  }
  expect_the_plain_run<float>(test::text_of(method, "float32"));
}

// Clients settle the error memory of absent clients; the server knows which clients' messages arrived, and the data that it sends.
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

// Rows of clients that are not in the cohort lie in a file, which is theirs alone.
class WallOfPages : public test::DataFolderTest, public testing::WithParamInterface<test::Method> {};

TEST_P(WallOfPages, HalvesTakeTheBytesOfThePlainRun) {
  test::Method method = GetParam();
  if (method.more.find("[participation]") == std::string::npos) method.more += "[participation]\nkind = 'uniform'\nclients = 3\n";
  const std::string text = test::text_of(method, "float32");
  std::uint64_t least = 0;
  try {
    test::OneRun<float> run(text);
    least = run->clients().least_bytes() < run->clients().whole_bytes() ? run->clients().least_bytes() : 0;
  } catch (const ConfigError&) {
    GTEST_SKIP() << "this method needs all clients in every round";
  }
  if (least == 0) GTEST_SKIP() << "clients remember nothing";
  expect_the_plain_run<float>(text, {.cohort = 3, .paging = {.memory_bytes = least, .file = {.folder = folder_}}});
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, WallOfPages, testing::ValuesIn(test::methods()), [](const auto& one) { return one.param.label; });

class WallOfFiles : public test::DataFolderTest {};

// Rounds without anybody, for every rule of absence: both sides count them as missed.
TEST_F(WallOfFiles, SkippedRoundsPassOnBothSides) {
  write("trace", "2,0\n2,3\n3,1\n3,3\n6,0\n6,1\n7,2\n10,0\n11,3\n11,4\n13,5\n13,0\n");
  const std::string trace = "[participation]\nkind = 'trace'\npath = '" + (folder_ / "trace").string() + "'\n";
  for (const std::string rule : {"'keep'", "'decay'\nabsent_decay = 0.5", "'drop'", "'server'"}) {
    test::Method method = test::methods().at(1);
    ASSERT_EQ(method.label, "ef14");
    method.more = trace + "absent = " + rule + "\n";
    EXPECT_EQ(expect_the_plain_run<float>(test::text_of(method, "float32")).skipped, 7U) << rule;
  }
  for (test::Method method : test::methods()) {
    if (method.label != "scaffold" && method.label != "lag" && method.label != "ef21_plus") continue;
    method.more = trace;
    EXPECT_EQ(expect_the_plain_run<float>(test::text_of(method, "float32")).skipped, 7U) << method.label;
  }
}

// One client's message is not finite in any round: it sends nothing, keeps its state, and the others share its weight.
TEST_F(WallOfFiles, RefusedMessagesCountOnNeitherSide) {
  for (const test::Overflowing& study : test::overflowing()) {
    write("rows", test::rows_of(study));
    const std::string text = test::text_of(study, (folder_ / "rows").string());
    const Seen seen = study.precision == "float32" ? expect_the_plain_run<float>(text) : expect_the_plain_run<double>(text);
    EXPECT_EQ(seen.refused, kWallRounds) << study.label;
  }
}

// Running statistics travel raw beside the message, or stay with the clients, whose messages then say nothing of them.
class WallOfStatistics : public test::StatisticsStudy, public testing::WithParamInterface<std::string> {};

TEST_P(WallOfStatistics, HalvesTakeTheBytesOfThePlainRun) {
  const std::string gradient = "kind = 'gradient'\nbatch = 4\nlearning_rate = 0.05";
  for (const std::string participation : {"kind = 'full'", "kind = 'uniform'\nclients = 2"})
    for (const auto& [feedback, local] :
         {std::pair<std::string, std::string>{"kind = 'ef14'", ""}, {"kind = 'ef14'", gradient}, {"kind = 'ef21'", gradient}}) {
      test::ScenarioText s = study(3);
      s.rounds = static_cast<int>(kWallRounds);
      s.server = "kind = 'sgd'\nstatistics = '" + GetParam() + "'";
      s.participation = participation;
      s.feedback = feedback;
      if (!local.empty()) s.local = local;
      s.up = "kind = 'top_k'\nk = 7";
      expect_the_plain_run<double>(s.str());
      s.precision = "float32";
      expect_the_plain_run<float>(s.str());
    }
}

// Shared, averaged and kept tensors side by side: the kept ones are weights that clients train, and running averages.
TEST_P(WallOfStatistics, HalvesTakeTheBytesOfThePlainRunWithTensorsOfEveryKind) {
  for (const std::string local : {"kind = 'gradient'\nbatch = 4\nlearning_rate = 0.05",
                                  "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.1\nproximal_mu = 0.2\nmomentum = 0.5"})
    for (const std::string down : {"", "[compressor.down]\nkind = 'qsgd'\n"}) {
      test::ScenarioText s = study(3);
      s.rounds = static_cast<int>(kWallRounds);
      s.model += "\nkeep = ['1.dense.*', '4.dense.weight', '*.running_mean']";
      s.server = "kind = 'sgd'\nstatistics = '" + GetParam() + "'";
      s.participation = "kind = 'uniform'\nclients = 2";
      s.feedback = "kind = 'ef14'";
      s.local = local;
      s.up = "kind = 'top_k'\nk = 2";
      s.more = down;
      expect_the_plain_run<double>(s.str());
      s.precision = "float32";
      expect_the_plain_run<float>(s.str());
    }
}

INSTANTIATE_TEST_SUITE_P(Rules, WallOfStatistics, testing::Values("average", "local"), [](const auto& one) { return one.param; });

// The studies that are made of what a feedback says of itself run, those of feedbacks that have a written one too: a new feedback has
// nothing else, and passes through the wall above with it.
class WallOfFitting : public testing::TestWithParam<test::Method> {};

TEST_P(WallOfFitting, HalvesTakeTheBytesOfThePlainRun) { expect_the_plain_run<float>(test::text_of(GetParam(), "float32")); }

INSTANTIATE_TEST_SUITE_P(EveryFeedback, WallOfFitting, testing::ValuesIn(test::fitting_methods()),
                         [](const auto& one) { return one.param.label; });

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
