// Tests that a conversation drives operators according to their interface: phases in order, the shared state between them, excluded tensors
// beside the message, state and memory if they are given.
#include "compressors/conversation.hpp"

#include <gtest/gtest.h>

#include "tests/compressors/operator_case.hpp"

namespace fl::test {
namespace {

using Vector = std::vector<double>;

// An operator of two phases: clients send half of p, and after the server's mean p times what everybody holds. It notes how it is driven.
class TwoPhases final : public Compressor<double>, public Phases<double> {
 public:
  [[nodiscard]] Contract contract(const Scope&) const override { return {}; }
  [[nodiscard]] const Phases<double>* phases() const override { return this; }
  [[nodiscard]] int count() const override { return 2; }
  [[nodiscard]] std::size_t length(int phase, const Scope& scope) const override { return phase == 0 ? 2 : scope.P; }
  [[nodiscard]] std::size_t state_size(const Scope&) const override { return 2; }
  void init_state(std::uint64_t key, const Scope&, double* shared) const override { shared[0] = shared[1] = static_cast<double>(key); }
  void absorb(int phase, const Scope& scope, std::span<const double> mean, double* shared, double* estimate) const override {
    if (phase == 0) std::copy_n(mean.begin(), 2, shared);
    if (phase == 1) std::copy_n(mean.begin(), scope.P, estimate);
  }
  void compress(const Exec&, const CompressContext<double>& context, const Affine<double>& input, const Scope& scope,
                const StateWrite<double>& state, std::span<Payload<double>* const> messages) override {
    for (std::size_t k = 0; k < messages.size(); ++k) {
      Payload<double>& message = *messages[k];
      shared_seen.push_back(context.shared[0]);
      wrote_state = wrote_state || (context.phase == 0 && state.rule != StateRule::none);
      message.num_sent = length(context.phase, scope);
      message.value.resize_discard(message.num_sent);
      for (std::size_t j = 0; j < message.num_sent; ++j)
        message.value.data()[j] = context.phase == 0 ? input.at(k, j) / 2 : input.at(k, j) * context.shared[0];
    }
  }

  std::vector<double> shared_seen;
  bool wrote_state = false;
};

Senders<double> senders_of(const std::vector<std::uint32_t>& clients, const Vector& x) {
  Senders<double> senders{.clients = clients};
  senders.input.add(1, rows_view<const double>(x.data(), clients.size(), x.size() / clients.size()));
  return senders;
}

TEST(Conversation, MovesTheSharedStateBetweenPhases) {
  TwoPhases op;
  const Scope scope{ScopeKind::model, {{0, 3, 3, 1}}, {}, 3};
  const std::vector<std::uint32_t> clients = {4, 7};
  const Vector x = {2, 0, 1, 6, 4, 3};
  Vector left(6, -77);
  Senders<double> senders = senders_of(clients, x);
  senders.state = {StateRule::residual, rows_view(left.data(), 2, 3)};
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Conversation<double> conversation(op, scope, 9);
  conversation.open(1);
  const Transcript<double> transcript = conversation.hold(exec, senders, 1);
  EXPECT_EQ(op.shared_seen, (Vector{9, 9, 2, 2})) << "the key's state, and then the mean of the halves";
  EXPECT_FALSE(op.wrote_state) << "state is written in the last phase";
  EXPECT_EQ(transcript.messages.size(), 2u);
  EXPECT_EQ(transcript.messages[0][1].length, 2u);
  EXPECT_EQ(transcript.alone, (Vector{4, 0, 2, 12, 8, 6}));
  EXPECT_EQ(transcript.mean, (Vector{8, 4, 4}));
  EXPECT_TRUE(conversation.is_over());

  Vector kept = {5, 5};  // of someone else, who has it afterwards
  Conversation<double> other(op, scope, 9, kept);
  other.open(1);
  (void)other.hold(exec, senders);
  EXPECT_EQ(op.shared_seen[4], 5);
  EXPECT_EQ(kept[0], 2);
}

TEST(Conversation, SendsExcludedTensorsBesideTheMessage) {
  const auto op = make_compressor<double>("top_k", {{"k", Value{std::int64_t{1}}}});
  LayerTable table;
  table.layers = {{"first", 0, 3, 1}, {"second", 3, 2, 1}};
  const Scope scope = make_scope(table, ScopeKind::model, 0, {"second"});
  const Sent<double> sent = compress(*op, scope, {1, -5, 2, 7, 8});
  EXPECT_EQ(sent.dense, (Vector{0, -5, 0, 7, 8}));
  EXPECT_EQ(sent.state, (Vector{1, 0, 2, 0, 0}));
  EXPECT_EQ(sent.message.excluded.size(), 2u);
}

}  // namespace
}  // namespace fl::test
