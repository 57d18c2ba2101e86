// Tests random_k whose positions do not travel: both sides draw them from the common seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compressors/codec/codec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::HasSubstr;

constexpr std::size_t kSize = 1000;
Value text(const char* s) { return Value{std::string(s)}; }
Value integer(std::int64_t i) { return Value{i}; }

Scope whole(std::size_t P = kSize) { return {ScopeKind::model, {{0, P, P, 1}}, {}, P}; }

std::vector<float> ramp(std::size_t P = kSize) {
  std::vector<float> x;
  for (std::size_t j = 0; j < P; ++j) x.push_back(static_cast<float>(j + 1));
  return x;
}

struct Arrived {
  std::uint64_t bits = 0, counted = 0;
  std::vector<float> vector;
};

// The side that reads messages of a round.
class Receiver {
 public:
  Receiver(Compressor<float>& op, const Scope& scope, std::uint32_t round) : scope_(scope), conversation_(op, scope, 42) {
    conversation_.open(round);
    known_ = conversation_.known_levels();
  }
  // Returns the message as it travels, and its length as it is counted.
  [[nodiscard]] std::pair<std::vector<std::byte>, std::uint64_t> encoded(const Payload<float>& message) const {
    const codec::Channel<float> channel{&message.on_wire(), &scope_, {}, known_};
    std::vector<std::byte> bytes;
    codec::encode<float>(std::span(&channel, 1), bytes);
    return {std::move(bytes), codec::encoded_bits<float>(std::span(&channel, 1))};
  }
  // Returns whether the bytes are a message. Their entries are drawn by reconstruct().
  [[nodiscard]] bool decode(std::span<const std::byte> bytes) {
    Payload<float>* const targets[] = {&decoded_};
    const Scope* const scopes[] = {&scope_};
    const std::size_t lengths[] = {scope_.P};
    return codec::decode<float>(bytes, scopes, lengths, targets, std::span(&known_, 1)).ok();
  }
  [[nodiscard]] std::vector<float> reconstruct(std::uint32_t client) {
    Payload<float>* const targets[] = {&decoded_};
    Workspace workspace;
    conversation_.reconstruct(Exec{.workspace = &workspace}, std::span(&client, 1), targets);
    std::vector<float> vector(scope_.P);
    write_dense(decoded_, scope_, vector.data());
    return vector;
  }

 private:
  const Scope& scope_;
  Conversation<float> conversation_;
  MessageLevels known_;
  Payload<float> decoded_;
};

Arrived arrive(Compressor<float>& op, const Payload<float>& message, const Scope& scope, std::uint32_t round, std::uint32_t client) {
  Receiver receiver(op, scope, round);
  const auto [bytes, counted] = receiver.encoded(message);
  EXPECT_TRUE(receiver.decode(bytes));
  return {8 * bytes.size(), counted, receiver.reconstruct(client)};
}

TEST(KnownPositions, OnlyValuesTravel) {
  const Scope scope = whole();
  std::map<std::string, Arrived> arrived;
  for (const char* positions : {"sent", "seed", "common"}) {
    const auto op = make_compressor<float>("random_k", {{"k", integer(10)}, {"positions", text(positions)}});
    const auto sent = compress(*op, scope, ramp(), 1, 7, 3);
    arrived[positions] = arrive(*op, sent.message, scope, 7, 3);
    EXPECT_EQ(arrived[positions].vector, sent.dense) << positions;
    EXPECT_EQ(arrived[positions].bits, arrived[positions].counted) << positions;
    EXPECT_EQ(sent.message.elements(), 10u);
  }
  EXPECT_EQ(arrived["seed"].bits, 32u * 10 + 8) << "ten values and the header";
  EXPECT_EQ(arrived["common"].bits, 32u * 10 + 8);
  EXPECT_GT(arrived["sent"].bits, 400u);
  EXPECT_EQ(arrived["seed"].vector, arrived["sent"].vector) << "the same sets";
}

TEST(KnownPositions, ServeSegmentsAndDropNothingThatTravelsBesideThem) {
  Scope scope{ScopeKind::tensor, {{0, 40, 40, 1}, {50, 950, 30, 30}}, {{40, 50, 10, 1}}, 950};
  for (const char* positions : {"seed", "common"}) {
    const auto op = make_compressor<float>("random_k", {{"ratio", Value{0.1}}, {"positions", text(positions)}, {"scaled", Value{true}}});
    const auto sent = compress(*op, scope, ramp(950), 1, 2, 5);
    EXPECT_EQ(arrive(*op, sent.message, scope, 2, 5).vector, sent.dense) << positions;
    EXPECT_EQ(sent.message.elements(), 4u + 90u + 10u);
  }
}

TEST(KnownPositions, ASetIsTheClientsOwnOrEverybodys) {
  const Scope scope = whole();
  const auto set_of = [&](const char* positions, std::uint32_t round, std::uint32_t client) {
    const auto op = make_compressor<float>("random_k", {{"k", integer(10)}, {"positions", text(positions)}});
    const auto sent = compress(*op, scope, ramp(), 1, round, client);
    return std::set<std::uint32_t>(sent.message.index.begin(), sent.message.index.end());
  };
  EXPECT_NE(set_of("seed", 1, 0), set_of("seed", 1, 1));
  EXPECT_EQ(set_of("common", 1, 0), set_of("common", 1, 1));
  EXPECT_NE(set_of("common", 1, 0), set_of("common", 2, 0));
  const auto contract_of = [&](const char* positions) {
    return make_compressor<float>("random_k", {{"k", integer(10)}, {"positions", text(positions)}, {"scaled", Value{true}}})
        ->contract(scope);
  };
  EXPECT_TRUE(contract_of("common").errors_are_shared);
  EXPECT_FALSE(contract_of("seed").errors_are_shared);
  EXPECT_EQ(contract_of("common").omega, contract_of("sent").omega);
}

TEST(KnownPositions, AreRefusedInsideAnotherOperator) {
  EXPECT_THAT(refusal([] {
                const Scope scope = whole();
                make_compressor<float>("accordion",
                                       {{"critical", Value{Value::Table{{"kind", text("random_k")}, {"positions", text("seed")}}}}})
                    ->check(scope);
              }),
              HasSubstr("cannot stand inside another operator"));
}

// A message that ends before its values do is refused.
TEST(KnownPositions, TruncatedMessagesAreRefused) {
  const Scope scope = whole();
  const auto op = make_compressor<float>("random_k", {{"k", integer(10)}, {"positions", text("seed")}});
  Receiver receiver(*op, scope, 1);
  const auto [bytes, counted] = receiver.encoded(compress(*op, scope, ramp(), 1, 1, 0).message);
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(receiver.decode(std::span(bytes).first(n))) << n;
  EXPECT_TRUE(receiver.decode(bytes));
}

// The methods that are made for random positions: the same model as with positions that travel, and fewer bits.
TEST(KnownPositions, RunsAreTheSameWithFewerBits) {
  for (const std::string feedback : {"kind = 'marina'", "kind = 'dasha'\na = 0.02", "kind = 'none'", "kind = 'diana'\nalpha = 0.04"}) {
    const auto outcome = [&](const std::string& positions) {
      test::ScenarioText s = logistic("name = 'mushrooms'\nrows = 400", 5);
      s.up = "kind = 'random_k'\nk = 5\nscaled = true\npositions = '" + positions + "'";
      s.feedback = feedback;
      s.local = feedback == "kind = 'marina'"                 ? "kind = 'gradient_difference'\nlearning_rate = 0.05"
                : feedback.find("dasha") != std::string::npos ? "kind = 'mvr'\nlearning_rate = 0.05"
                                                              : "kind = 'gradient'\nlearning_rate = 0.05";
      s.rounds = 20;
      OneRun<double> run(s.str());
      const RunResult result = run->run({});
      return std::pair{result.record.checksum, result.record.bits_up};
    };
    const auto sent = outcome("sent"), seed = outcome("seed"), common = outcome("common");
    EXPECT_EQ(seed.first, sent.first) << feedback;
    EXPECT_LT(seed.second, sent.second) << feedback;
    EXPECT_EQ(common.second, seed.second) << feedback;
    EXPECT_NE(common.first, seed.first) << feedback;
  }
}

// Scenarios of before have the same resolved text, and so the same hash.
TEST(KnownPositions, TheDefaultIsNotWritten) {
  test::ScenarioText s = logistic("name = 'mushrooms'\nrows = 400", 5);
  s.up = "kind = 'random_k'\nk = 5\npositions = 'sent'";
  const std::string text = to_toml(parse_scenario(s.str(), "f.toml"));
  EXPECT_EQ(text.find("\npositions"), std::string::npos) << text;
  s.up = "kind = 'random_k'\nk = 5\npositions = 'seed'";
  EXPECT_NE(to_toml(parse_scenario(s.str(), "f.toml")).find("\npositions = \"seed\""), std::string::npos);
}

}  // namespace
}  // namespace fl
