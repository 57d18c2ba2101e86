// What every compressor must do, whatever it promises about errors: well-formed messages, a state made from the decoded message bit for
// bit, exact lengths, answers that do not depend on blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "compressors/codec/codec.hpp"
#include "tests/properties/property_cases.hpp"

namespace fl::test {
namespace {

template <class T>
class CompressorProperties : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CompressorProperties, Precisions);

// Equal bits, so that NaN equals itself and -0 differs from 0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
std::vector<std::byte> encoded(const Payload<T>& message, const Scope& scope) {
  const codec::Channel<T> channel{&message, &scope};
  std::vector<std::byte> bytes;
  codec::encode<T>(std::span(&channel, 1), bytes);
  return bytes;
}

template <class T>
void expect_list(const Payload<T>& message, const Scope& scope) {
  ASSERT_EQ(message.counts.size(), scope.segments.size());
  ASSERT_EQ(message.index.size(), message.num_sent);
  std::size_t i = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    for (std::uint32_t n = 0; n < message.counts[s]; ++n, ++i) {
      ASSERT_LT(i, message.num_sent);
      EXPECT_GE(message.index[i], scope.segments[s].begin);
      EXPECT_LT(message.index[i], scope.segments[s].end);
      if (n > 0) {
        EXPECT_GT(message.index[i], message.index[i - 1]);
      }
    }
  }
  EXPECT_EQ(i, message.num_sent);
}

template <class T>
void expect_well_formed(const Payload<T>& message, const Scope& scope) {
  std::size_t compressed = 0, excluded = 0;
  for (const Segment& segment : scope.segments) compressed += segment.size();
  for (const Segment& segment : scope.excluded) excluded += segment.size();
  if (message.positions == Positions::list)
    expect_list(message, scope);
  else
    EXPECT_EQ(message.num_sent, compressed);
  EXPECT_EQ(message.excluded.size(), excluded);
  EXPECT_EQ(message.elements(), message.num_sent + excluded);
  if (message.values != WireValue::levels) {
    EXPECT_EQ(message.value.size(), message.num_sent);
    return;
  }
  const LevelFormat& format = message.level_format;
  ASSERT_EQ(message.level_bytes.size(), message.num_sent * static_cast<std::size_t>(message.level_width));
  EXPECT_EQ(message.scale.size(), format.has_scale ? scope.segments.size() : 0u);
  for (std::size_t i = 0; i < message.num_sent; ++i) {
    const std::int64_t code = std::int64_t{message.level(i)} - format.min_level;
    ASSERT_TRUE(code >= 0 && code < (std::int64_t{1} << format.bits)) << "level " << message.level(i);
  }
}

TYPED_TEST(CompressorProperties, MessagesAreWellFormed) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const Shape shape : kShapes) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      Block<T> block(shape, 2, scope.P, 11);
      const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::none, false, 2);
      for (int phase = 0; phase < compressor.num_phases(); ++phase) {
        for (const Payload<T>& message : outcome.messages[static_cast<std::size_t>(phase)]) {
          const Scope own = phase_scope(compressor, scope, phase);
          expect_well_formed(message, own);
          EXPECT_GE(compressor.published_bits(message, own), 0);
        }
      }
      const WireValue values = outcome.messages.back()[0].values;
      if (values != WireValue::levels && values != kNativeWire<T>) continue;  // a narrower format may overflow
      for (const T value : outcome.c) ASSERT_TRUE(std::isfinite(value));
    }
  });
}

TYPED_TEST(CompressorProperties, EveryOperatorServesAScopeWithItsDefaults) {
  using T = TypeParam;
  std::map<std::string, int> served_scopes;
  for (const std::string& name : Registry::instance().names("compressor")) served_scopes[name] = 0;
  for_each_case<T>([&](const Case& c, Compressor<T>&, const std::string&, const Scope&) {
    if (c.label == c.name) ++served_scopes[c.name];
  });
  EXPECT_FALSE(served_scopes.empty());
  for (const auto& [name, count] : served_scopes) EXPECT_GT(count, 0) << name;
}

TYPED_TEST(CompressorProperties, TheResidualIsTheInputMinusTheDecodedMessage) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const Shape shape : kShapes) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      Block<T> block(shape, 3, scope.P, 12);
      const std::vector<T> p = block.p();
      Sender<T> sender(compressor, scope);
      const Outcome<T> outcome = sender.send(block, StateRule::residual, false, 3);
      std::vector<T> expected(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) expected[i] = p[i] - outcome.c[i];
      for (std::size_t i = 0; i < p.size(); ++i) ASSERT_EQ(outcome.state[i], expected[i]) << "element " << i << " of " << p[i];
      Block<T> again(shape, 3, scope.P, 12);
      EXPECT_TRUE(same_bits(sender.send(again, StateRule::residual, true, 3).state, outcome.state)) << "written over the input";
    }
  });
}

TYPED_TEST(CompressorProperties, ZeroWhereSent) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    if (compressor.num_phases() > 1) return;
    SCOPED_TRACE(c.label + ", " + label);
    Block<T> block(Shape::random, 2, scope.P, 13);
    const std::vector<T> p = block.p();
    const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::zero_where_sent, true, 2);
    std::vector<T> expected = p;
    for (std::size_t k = 0; k < 2; ++k) zero_where_sent(outcome.messages[0][k], scope, expected.data() + k * scope.P);
    for (std::size_t i = 0; i < p.size(); ++i) ASSERT_EQ(outcome.state[i], expected[i]) << i;
  });
}

TYPED_TEST(CompressorProperties, NoStateIsWrittenWhenNoneIsAsked) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    SCOPED_TRACE(c.label + ", " + label);
    Block<T> block(Shape::random, 2, scope.P, 14);
    const Block<T> untouched = block;
    const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::none, false, 2);
    EXPECT_TRUE(same_bits(block.e, untouched.e));
    EXPECT_TRUE(same_bits(block.g, untouched.g));
    for (const T value : outcome.state) ASSERT_EQ(value, T(-77));
  });
}

TYPED_TEST(CompressorProperties, OneByOneIsTheSameAsAllAtOnce) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const Shape shape : {Shape::random, Shape::sparse, Shape::tied}) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      Block<T> together(shape, 5, scope.P, 15), alone(shape, 5, scope.P, 15), pairs(shape, 5, scope.P, 15);
      Sender<T> sender(compressor, scope);
      const Outcome<T> a = sender.send(together, StateRule::residual, true, 5), b = sender.send(alone, StateRule::residual, true, 1),
                       d = sender.send(pairs, StateRule::residual, false, 2);
      EXPECT_TRUE(same_bits(a.state, b.state));
      EXPECT_TRUE(same_bits(a.state, d.state));
      for (std::size_t phase = 0; phase < a.messages.size(); ++phase) {
        const Scope own = phase_scope(compressor, scope, static_cast<int>(phase));
        for (std::size_t k = 0; k < 5; ++k) {
          EXPECT_EQ(encoded(a.messages[phase][k], own), encoded(b.messages[phase][k], own));
          EXPECT_EQ(encoded(a.messages[phase][k], own), encoded(d.messages[phase][k], own));
        }
      }
    }
  });
}

TYPED_TEST(CompressorProperties, EncodedLengthIsExactAndDecodingGivesTheSameNumbers) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const Shape shape : kShapes) {
      SCOPED_TRACE(c.label + ", " + label + ", " + to_string(shape));
      Block<T> block(shape, 1, scope.P, 16);
      const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::none, false, 1);
      for (int phase = 0; phase < compressor.num_phases(); ++phase) {
        const Payload<T>& message = outcome.messages[static_cast<std::size_t>(phase)][0];
        const Scope own = phase_scope(compressor, scope, phase);
        const codec::Channel<T> channel{&message, &own};
        const std::vector<std::byte> bytes = encoded(message, own);
        EXPECT_EQ(codec::encoded_bits<T>(std::span(&channel, 1)), 8 * bytes.size());
        Payload<T> decoded;
        Payload<T>* const targets[] = {&decoded};
        const Scope* const scopes[] = {&own};
        const std::size_t lengths[] = {message.length};
        const auto read = codec::decode<T>(bytes, scopes, lengths, targets);
        ASSERT_TRUE(read.ok()) << read.error().reason;
        std::vector<T> sent(message.length), received(message.length);
        write_dense(message, own, sent.data());
        write_dense(decoded, own, received.data());
        EXPECT_TRUE(same_bits(sent, received));
      }
    }
  });
}

// Fifty rounds of EF14 at the client and of h += c at both ends, the server reading bytes only.
TYPED_TEST(CompressorProperties, ServerAndClientHoldTheSameNumbers) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    if (compressor.num_phases() > 1) return;
    SCOPED_TRACE(c.label + ", " + label);
    const T gain = T(0.3);
    std::vector<T> client(scope.P, T(0)), server(scope.P, T(0)), error(scope.P, T(0)), rebuilt(scope.P, T(0));
    for (std::uint32_t round = 0; round < 50; ++round) {
      Block<T> block(Shape::random, 1, scope.P, 100 + round);
      block.e = error;
      const std::vector<T> p = block.p();
      const Outcome<T> outcome = Sender<T>(compressor, scope, round).send(block, StateRule::residual, true, 1);
      error = outcome.state;
      add_scaled(outcome.messages[0][0], scope, gain, client.data());
      Payload<T> decoded;
      Payload<T>* const targets[] = {&decoded};
      const Scope* const scopes[] = {&scope};
      const std::size_t lengths[] = {scope.P};
      const auto read = codec::decode<T>(encoded(outcome.messages[0][0], scope), scopes, lengths, targets);
      ASSERT_TRUE(read.ok()) << read.error().reason;
      add_scaled(decoded, scope, gain, server.data());
      std::vector<T> received(scope.P);
      write_dense(decoded, scope, received.data());
      for (std::size_t j = 0; j < scope.P; ++j) rebuilt[j] = p[j] - received[j];
      ASSERT_TRUE(std::equal(error.begin(), error.end(), rebuilt.begin())) << "round " << round;
      ASSERT_TRUE(same_bits(client, server)) << "round " << round;
    }
  });
}

TYPED_TEST(CompressorProperties, NanAndInfinityDoNotHangOrBreakTheMessage) {
  using T = TypeParam;
  for_each_case<T>([](const Case& c, Compressor<T>& compressor, const std::string& label, const Scope& scope) {
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::max()}) {
      SCOPED_TRACE(c.label + ", " + label + ", " + std::to_string(bad));
      for (const bool everywhere : {false, true}) {
        Block<T> block(Shape::random, 1, scope.P, 17);
        for (std::size_t j = 0; j < scope.P; ++j)
          if (everywhere || j % 5 == 0) block.e[j] = bad;
        const Outcome<T> outcome = Sender<T>(compressor, scope).send(block, StateRule::residual, true, 1);
        for (int phase = 0; phase < compressor.num_phases(); ++phase)
          expect_well_formed(outcome.messages[static_cast<std::size_t>(phase)][0], phase_scope(compressor, scope, phase));
      }
    }
  });
}

}  // namespace
}  // namespace fl::test
