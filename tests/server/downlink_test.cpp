// Tests the downlink: clients that apply only the received messages hold w, bit for bit, and pay for every byte.
#include "server/downlink.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/cpu/dense.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

constexpr std::size_t kClients = 7;

template <class T>
ExchangeChannel<T> identity_channel(std::size_t P, const std::string& format) {
  Options options = Registry::instance().default_options("compressor", "identity");
  Schema schema = options.schema();
  EXPECT_FALSE(schema.find("format")->assign(Value{format}).has_value());
  ExchangeChannel<T> channel;
  channel.name = "down";
  channel.compressor = make_part<Compressor<T>>("compressor", "identity", options, Device::cpu, kPrecisionOf<T>);
  channel.scope = {.kind = ScopeKind::model, .segments = {{.begin = 0, .end = P, .rows = P, .cols = 1}}, .excluded = {}, .P = P};
  channel.phase_scope = {channel.scope};
  return channel;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A server whose model moves, and what it charges.
template <class T>
struct Server {
  explicit Server(std::size_t P, const std::string& format = "native", DownSends sends = DownSends::changes)
      : model(P), downlink(identity_channel<T>(P, format), sends, kClients, P, {}), shared(P) {}
  // Bits that each of the cohort is charged.
  std::vector<std::uint64_t> play(std::uint32_t round, const std::vector<std::uint32_t>& cohort) {
    Workspace workspace;
    Exec exec;
    exec.workspace = &workspace;
    const std::vector<std::uint64_t> before = ledger.client_down_bits();
    ledger.open_round();
    downlink.send(exec, round, model, cohort, shared, ledger);
    ledger.close_round();
    std::vector<std::uint64_t> bits;
    for (const std::uint32_t client : cohort) bits.push_back(ledger.client_down_bits()[client] - before[client]);
    return bits;
  }
  std::vector<T> model;
  Downlink<T> downlink;
  SharedState<T> shared;
  Ledger ledger{kClients};
};

template <class T>
class DownlinkTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(DownlinkTest, Precisions);

// Partial participation, steps that move one coordinate, a tenth, none or all; zeros that change their sign; a checkpoint in between.
TYPED_TEST(DownlinkTest, ClientsThatApplyWhatTheyAreSentHoldTheServersModel) {
  using T = TypeParam;
  constexpr std::size_t P = 300;
  for (const std::string format : {"native", "fp16"}) {
    Server<T> server(P, format);
    std::mt19937_64 random(3);
    for (T& x : server.model) x = static_cast<T>(std::normal_distribution<double>()(random));
    std::vector<std::vector<T>> held(kClients, std::vector<T>(P));
    std::vector<std::uint32_t> last(kClients, 0);
    std::size_t sparse = 0, returned = 0;
    for (std::uint32_t round = 1; round <= 60; ++round) {
      std::vector<std::uint32_t> cohort;
      for (std::uint32_t client = 0; client < kClients; ++client)
        if (random() % 3 == 0) cohort.push_back(client);
      if (cohort.empty()) continue;
      const std::vector<std::uint64_t> charged = server.play(round, cohort);
      const std::span<const T> w = server.downlink.reference();
      const std::uint64_t dense = 8 + P * (format == "fp16" ? 16 : 8 * sizeof(T));
      for (std::size_t i = 0; i < cohort.size(); ++i) {
        const std::uint32_t client = cohort[i];
        const Payload<T>* changes = last[client] == 0 ? nullptr : server.downlink.changes_since(last[client]);
        if (changes == nullptr) {
          held[client].assign(w.begin(), w.end());
          EXPECT_EQ(charged[i], dense);
        } else {
          const codec::Channel<T> channel{changes, &server.downlink.change_scope()};
          std::vector<std::byte> bytes;
          codec::encode<T>({&channel, 1}, bytes);
          EXPECT_EQ(charged[i], 8 * bytes.size());
          EXPECT_LT(charged[i], dense);
          const std::array<const Scope*, 1> scopes = {&server.downlink.change_scope()};
          const std::array<std::size_t, 1> lengths = {P};
          Payload<T> received;
          const std::array<Payload<T>*, 1> payloads = {&received};
          ASSERT_TRUE(codec::decode<T>(bytes, scopes, lengths, payloads).ok());
          for (std::size_t k = 0; k < received.num_sent; ++k) held[client][received.index[k]] = received.value[k];
          ++sparse;
          returned += last[client] + 1 < round ? 1 : 0;
        }
        EXPECT_TRUE(same_bits<T>(held[client], w)) << format << ", round " << round << ", client " << client;
        last[client] = round;
      }
      if (round == 30) {  // what a checkpoint keeps is enough to go on
        Archive out;
        server.downlink.persist(out);
        Server<T> resumed(P, format);
        Archive in(out.bytes());
        resumed.downlink.persist(in);
        resumed.model = server.model;
        std::swap(server.downlink, resumed.downlink);
      }
      const std::uint64_t kind = random() % 4;
      for (std::size_t j = 0; j < P; ++j)
        if (kind == 0 || (kind == 1 && random() % 10 == 0) || (kind == 2 && j == round)) server.model[j] += T(0.25);
      if (kind == 3) server.model[round] = server.model[round] == T(0) ? -server.model[round] : T(0);
    }
    EXPECT_GT(sparse, 30U);
    EXPECT_GT(returned, 10U);
  }
}

// As in the codec's own example: header 8, count 3, code 3, position 9, the value; and a dense vector of 1 + 8 P bytes.
TEST(Downlink, LengthsThatCanBeWorkedOutByHand) {
  Server<double> server(500);
  EXPECT_EQ(server.play(1, {0, 1, 2}), (std::vector<std::uint64_t>{32008, 32008, 32008}));
  server.model[321] = 1.5;
  EXPECT_EQ(server.play(2, {0, 3}), (std::vector<std::uint64_t>{88, 32008}));
  EXPECT_EQ(server.play(3, {0}), (std::vector<std::uint64_t>{16})) << "nothing changed";
  server.model[321] = 2.5;
  server.model[7] = -0.0;
  // Two positions of 9 bits: header 8, count gamma(3) = 3, code 3; both changes for those of rounds 1 and 2.
  const std::uint64_t two = (8 + 3 + 3 + 18 + 128 + 7) / 8 * 8;
  EXPECT_EQ(server.play(4, {0, 1, 3}), (std::vector<std::uint64_t>{two, two, two}));
  EXPECT_EQ(server.ledger.total_down_bits(DownCause::model), 4u * 32008);
  EXPECT_EQ(server.ledger.total_down_bits(DownCause::changes), 88 + 16 + 3 * two);
  EXPECT_EQ(server.ledger.total_down_bits(DownCause::catch_up), 0u) << "the missed rounds changed the same coordinate";
  server.model[9] = 1;
  const std::vector<std::uint64_t> late = server.play(5, {0, 2});
  EXPECT_EQ(late[0], 88u);
  EXPECT_GT(late[1], two);
  EXPECT_EQ(server.ledger.total_down_bits(DownCause::catch_up), late[1] - 88);
}

TEST(Downlink, BitPatternsDecide) {
  Server<double> server(500);
  (void)server.play(1, {0});
  server.model[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(server.play(2, {0}), (std::vector<std::uint64_t>{88}));
  EXPECT_EQ(server.play(3, {0}), (std::vector<std::uint64_t>{16})) << "a NaN that stays is no change";
  server.model[4] = -0.0;
  EXPECT_EQ(server.play(4, {0}), (std::vector<std::uint64_t>{88}));
}

TEST(Downlink, TheModelEveryRoundWhereThatIsAsked) {
  Server<double> server(500, "native", DownSends::model);
  (void)server.play(1, {0});
  EXPECT_EQ(server.play(2, {0, 1}), (std::vector<std::uint64_t>{32008, 32008}));
}

// Dense steps are charged as before, whatever is asked for.
TEST(Downlink, DenseStepsCostTheModel) {
  Server<double> server(500);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    EXPECT_EQ(server.play(round, {0, round % 3 + 1}), (std::vector<std::uint64_t>{32008, 32008}));
    for (double& x : server.model) x += 1;
  }
}

// Runs: the same model, fewer bits where steps are sparse, the same bits where they are dense.
TEST(Downlink, ChangesAreCheaperInRuns) {
  for (const bool dense : {false, true}) {
    test::ScenarioText s = test::quadratics();
    s.local = "kind = 'gradient'\nlearning_rate = 0.1";
    s.up = dense ? "kind = 'identity'" : "kind = 'top_k'\nk = 1";
    s.feedback = dense ? "kind = 'none'" : "kind = 'ef14'";
    s.participation = "kind = 'uniform'\nclients = 2";
    s.rounds = 20;
    s.more = "[compressor.down]\nsend = 'changes'";
    const RunResult changes = test::run_text(s.str()).front();
    s.more = "[compressor]\ndown = 'model'";
    const RunResult model = test::run_text(s.str()).front();
    EXPECT_EQ(changes.record.checksum, model.record.checksum);
    EXPECT_EQ(changes.record.bits_up, model.record.bits_up);
    if (dense)
      EXPECT_EQ(changes.record.bits_down, model.record.bits_down);
    else
      EXPECT_LT(changes.record.bits_down, model.record.bits_down);
  }
}

}  // namespace
}  // namespace fl
