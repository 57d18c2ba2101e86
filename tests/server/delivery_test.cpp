// Tests which messages of a round count, and the server's errors for bytes that are not a message.
#include "server/delivery.hpp"

#include <gmock/gmock.h>

#include "compressors/codec/codec.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/file/scenario.hpp"
#include "server/message_reader.hpp"

namespace fl {
namespace {

using testing::ElementsAre;

std::vector<ClientMessage<double>> with_refused(std::initializer_list<bool> refused) {
  std::vector<ClientMessage<double>> messages;
  for (const bool one : refused) {
    messages.emplace_back();
    messages.back().refused = one;
  }
  return messages;
}

TEST(Delivery, TheOthersShareTheWeightOfWhoIsRefused) {
  Delivery delivery;
  delivery.open(4);
  std::vector<double> weights = {0.125, 0.375, 0.25, 0.25};
  delivery.take<double>(with_refused({false, true, false, false}), weights);
  EXPECT_THAT(weights, ElementsAre(0.2, 0, 0.4, 0.4));
  EXPECT_THAT(delivery.delivered(), ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(delivery.refused(), 1U);
}

// A client that was refused in one phase stays refused, and is counted once.
TEST(Delivery, WhoIsRefusedOnceIsNotHeardInLaterPhases) {
  Delivery delivery;
  delivery.open(2);
  std::vector<double> weights = {0.5, 0.5};
  delivery.take<double>(with_refused({true, false}), weights);
  delivery.take<double>(with_refused({true, false}), weights);
  EXPECT_THAT(weights, ElementsAre(0, 1));
  delivery.take<double>(with_refused({false, false}), weights);
  EXPECT_THAT(delivery.delivered(), ElementsAre(0, 1));
  EXPECT_EQ(delivery.refused(), 1U);
}

// The deliveries of the previous round do not apply to a round without clients.
TEST(Delivery, ASkippedRoundHasNoMarks) {
  Delivery delivery;
  delivery.open(2);
  std::vector<double> weights = {0.5, 0.5};
  delivery.take<double>(with_refused({true, false}), weights);
  delivery.skip();
  EXPECT_THAT(delivery.delivered(), ElementsAre());
  EXPECT_EQ(delivery.refused(), 0U);
}

TEST(Delivery, OfNobodyLeavesNoWeight) {
  Delivery delivery;
  delivery.open(2);
  std::vector<double> weights = {0.5, 0.5};
  delivery.take<double>(with_refused({true, true}), weights);
  EXPECT_THAT(weights, ElementsAre(0, 0));
  EXPECT_EQ(delivery.refused(), 2U);
  delivery.skip();
  EXPECT_EQ(delivery.refused(), 0U);
}

// Clients whose messages are bytes alone.
class Far final : public CohortRunner<double> {
 public:
  void open_round(const RoundView<double>&, const RoundOpening<double>&) override {}
  void skip_round(std::uint32_t) override {}
  MessageBatch<double> exchange(const RoundView<double>&, int) override { return {}; }
  void close_round(const RoundView<double>&, std::span<const std::uint8_t>) override {}
  [[nodiscard]] std::span<const double> error_memory(std::uint32_t) override { return {}; }
  void persist(Archive&) override {}
};

TEST(MessageReader, ReadsBytesAndNamesWhoseAreNoMessage) {
  const Scope scope{.kind = ScopeKind::model, .segments = {{0, 3, 3, 1}}, .excluded = {}, .P = 3};
  Exchange<double> exchange;
  ExchangeChannel<double>& channel = exchange.channels.emplace_back();
  channel.name = "model";
  const Part identity = default_part("compressor", "identity");
  channel.compressor = make_part<Compressor<double>>("compressor", identity.kind, identity.options, Device::cpu, Precision::float64);
  channel.scope = scope;
  channel.phase_scope = {scope};
  ThreadPool pool(1);
  Payload<double> sent;
  Payload<double>* target = &sent;
  sent.clear(3);
  const std::vector<double> vector = {1, -2, 0.5};
  Affine<double> input;
  input.add(1, shared_view<const double>(vector.data(), 1, 3));
  const std::uint32_t client = 5;
  RunSettings run;
  run.num_clients = 6;
  run.P = 3;
  const RoundOrder order{.round = 7, .cohort = {client}};
  const RoundView<double> round{run, order, {}};
  channel.compressor->compress(pool.exec(0), channel.context(round, 0, order.cohort), input, scope, {}, std::span(&target, 1));
  std::vector<std::byte> bytes;
  const codec::Channel<double> on_wire{&sent, &scope};
  codec::encode<double>(std::span(&on_wire, 1), bytes);

  MessageReader<double> reader(exchange, pool);
  std::vector<ClientMessage<double>> messages(1);
  messages[0].client = client;
  messages[0].encoded = bytes;
  Far far;
  reader.read(round, 0, {.messages = messages}, far);
  ASSERT_NE(reader.payload(0, 0), nullptr);
  EXPECT_NE(reader.payload(0, 0), &sent);
  EXPECT_EQ(std::vector<double>(reader.payload(0, 0)->value.begin(), reader.payload(0, 0)->value.end()), vector);

  messages[0].encoded = std::span<const std::byte>(bytes).first(bytes.size() - 1);
  try {
    reader.read(round, 0, {.messages = messages}, far);
    FAIL() << "a byte is missing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the message of client 5 in round 7 cannot be read"));
  }
}

}  // namespace
}  // namespace fl
