// Tests that sixteen bytes of a peer do not make a megabyte, whichever operator receives them: the message is decoded and its entries are
// made as a server makes them, for vectors of 4,096 numbers.
#include <gtest/gtest.h>

#include <random>

#include "checks/compressor_cases.hpp"
#include "compressors/codec/codec.hpp"
#include "tests/support/most_held.hpp"

namespace fl {
namespace {

constexpr std::size_t kParameters = 4096, kBytes = 16;
constexpr std::int64_t kMost = 1 << 20;

std::vector<Scope> scopes() {
  const Scope model{.kind = ScopeKind::model, .segments = {{0, kParameters, kParameters, 1}}, .excluded = {}, .P = kParameters};
  Scope tensors{.kind = ScopeKind::tensor, .segments = {}, .excluded = {}, .P = kParameters};
  for (std::size_t begin = 0; begin < kParameters; begin += 1024) tensors.segments.push_back({begin, begin + 1024, 32, 32});
  return {model, tensors};
}

// Messages of sixteen bytes or fewer: an honest one or its beginning, with some of its bits changed, and bytes at random.
std::vector<std::vector<std::byte>> messages(std::span<const std::byte> honest) {
  std::mt19937 random(11);
  std::vector<std::vector<std::byte>> all;
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::byte> bytes(kBytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (trial < 40 && honest.size() < kBytes) bytes.resize(honest.size());
    if (trial < 40) std::copy_n(honest.begin(), bytes.size(), bytes.begin());
    for (int bit = 0; bit < trial % 4 && !bytes.empty(); ++bit) bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    all.push_back(std::move(bytes));
  }
  return all;
}

template <class T>
std::vector<std::byte> honest_message(Compressor<T>& compressor, const Scope& scope, checks::InputShape shape) {
  checks::BlockInput<T> block(shape, 1, kParameters, 3);
  const checks::Outcome<T> outcome = checks::Sender<T>(compressor, scope).send(block, StateRule::none, false, 1);
  const codec::Channel<T> channel{
      .payload = &outcome.messages[0][0], .scope = &scope, .tally = {}, .levels = checks::Sender<T>(compressor, scope).known_levels()};
  std::vector<std::byte> bytes;
  if (compressor.num_phases() == 1) codec::encode<T>(std::span(&channel, 1), bytes);
  return bytes;
}

template <class T>
void expect_no_amplification(const checks::Case& c, const Scope& asked, std::size_t& accepted) {
  const auto compressor = checks::make<T>(c);
  const std::optional<Scope> scope = checks::served(*compressor, asked);
  if (!scope) return;
  const Scope first_phase = message_scope(*compressor, *scope, 0);
  checks::Sender<T> receiver(*compressor, *scope);
  const checks::BlockInput<T> block(checks::InputShape::zero, 1, kParameters, 3);
  const MessageLevels known = receiver.known_levels();
  const Scope* of_message = &first_phase;
  const std::size_t length = first_phase.P;
  std::vector<std::vector<std::byte>> all = messages(honest_message(*compressor, *scope, checks::InputShape::random));
  for (std::vector<std::byte> bytes : messages(honest_message(*compressor, *scope, checks::InputShape::zero)))
    all.push_back(std::move(bytes));
  for (const std::vector<std::byte>& bytes : all) {
    const std::int64_t held = test::most_held([&] {
      Payload<T> payload;
      Payload<T>* target = &payload;
      const auto read =
          codec::decode<T>(bytes, std::span(&of_message, 1), std::span(&length, 1), std::span(&target, 1), std::span(&known, 1));
      if (!read.ok()) return;
      ++accepted;
      receiver.receive(block, 0, payload);
    });
    EXPECT_LE(held, kMost) << c.label;
  }
}

TEST(Amplification, NoOperatorMakesAMegabyteOfSixteenBytes) {
  std::size_t accepted = 0;
  for (const std::string& name : Registry::instance().names("compressor"))
    for (const checks::Case& c : checks::cases_of(name))
      for (const Scope& scope : scopes()) {
        SCOPED_TRACE(c.label);
        expect_no_amplification<float>(c, scope, accepted);
        expect_no_amplification<double>(c, scope, accepted);
      }
  EXPECT_GT(accepted, 100U) << "messages that are read, too";
}

}  // namespace
}  // namespace fl
