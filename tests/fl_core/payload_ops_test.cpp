#include "fl_core/message/payload_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "tests/compressors/codec/random_payload.hpp"

namespace fl {
namespace {

// The entries of a message in plain loops: parameter and number.
template <class T>
std::vector<std::pair<std::size_t, T>> entries(const Payload<T>& message, const Scope& scope) {
  std::vector<std::pair<std::size_t, T>> list;
  if (message.silent) return list;
  Segment plain;
  const auto segments = message_segments(scope, has_own_shape(message, scope), message.length, plain);
  std::size_t i = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t count = message.positions == Positions::all ? segments[s].size() : message.counts[s];
    for (std::size_t n = 0; n < count; ++n, ++i) {
      const std::size_t j = message.positions == Positions::all ? segments[s].begin + n : message.index[i];
      const LevelFormat& format = message.level_format;
      list.emplace_back(j, message.values != WireValue::levels
                               ? message.value[i]
                               : level_value(format, message.level(i), message.scale.data() + s * scales_per_segment(format)));
    }
  }
  EXPECT_EQ(i, message.num_sent);
  i = 0;
  for (const Segment& tensor : scope.excluded) {
    for (std::size_t j = tensor.begin; j < tensor.end && !message.excluded.empty(); ++j) list.emplace_back(j, message.excluded[i++]);
  }
  return list;
}

template <class T>
std::vector<T> noise(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(std::normal_distribution<double>()(random));
  return x;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
class PayloadOpsTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(PayloadOpsTest, Precisions);

TYPED_TEST(PayloadOpsTest, AgreeWithPlainLoopsBitForBit) {
  using T = TypeParam;
  for (const std::size_t length : {0U, 1U, 2U, 63U, 64U, 65U, 1500U}) {
    test::for_each_kind<T>(length, length + 5, [&](Payload<T>& message, const Scope& scope) {
      for (const bool silent : {false, true}) {
        message.silent = silent;
        const auto list = entries(message, scope);
        const auto start = noise<T>(message.length, 6);

        auto expected = start, is = start;
        for (const auto& [j, c] : list) expected[j] += T(0.3) * c;
        add_scaled(message, scope, T(0.3), is.data());
        ASSERT_TRUE(same_bits(is, expected));

        expected.assign(message.length, T(0));
        for (const auto& [j, c] : list) expected[j] = c;
        is = start;
        write_dense(message, scope, is.data());
        ASSERT_TRUE(same_bits(is, expected));

        expected = is = start;
        for (const auto& [j, c] : list) expected[j] = T(0);
        zero_where_sent(message, scope, is.data());
        ASSERT_TRUE(same_bits(is, expected));

        const auto sum = noise<double>(message.length, 7);
        auto expected_sum = sum, is_sum = sum;
        for (const auto& [j, c] : list) expected_sum[j] += 0.7 * static_cast<double>(c);
        accumulate(message, scope, 0.7, 0, message.length, is_sum.data());
        ASSERT_TRUE(same_bits(is_sum, expected_sum));
      }
      message.silent = false;
    });
  }
}

TYPED_TEST(PayloadOpsTest, AccumulateByRangesIsAccumulate) {
  using T = TypeParam;
  std::mt19937_64 random(9);
  test::for_each_kind<T>(200, 10, [&](const Payload<T>& message, const Scope& scope) {
    std::vector<std::size_t> cuts = {0, message.length};
    for (int i = 0; i < 4; ++i) cuts.push_back(random() % (message.length + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<double> whole(message.length), parts(message.length);
    accumulate(message, scope, -1.5, 0, message.length, whole.data());
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      std::vector<double> before = parts;
      accumulate(message, scope, -1.5, cuts[i - 1], cuts[i], parts.data());
      for (std::size_t j = 0; j < message.length; ++j) {
        ASSERT_TRUE((j >= cuts[i - 1] && j < cuts[i]) || parts[j] == before[j]) << "outside the range";
      }
    }
    ASSERT_TRUE(same_bits(whole, parts));
  });
}

// Dense ones are taken several at a time: silent, absent and sparse ones among them, and a number that no group divides.
TYPED_TEST(PayloadOpsTest, ManyMessagesAreOneAfterAnother) {
  using T = TypeParam;
  constexpr std::size_t kLength = 203, kMessages = 45;
  const Scope scope{.kind = ScopeKind::model, .segments = {{0, kLength, kLength, 1}}, .excluded = {}, .P = kLength};
  std::vector<Payload<T>> messages(kMessages);
  std::vector<const Payload<T>*> pointers;
  const auto weights = noise<double>(kMessages, 3);
  for (std::size_t m = 0; m < kMessages; ++m) {
    Payload<T>& message = messages[m];
    message.clear(kLength);
    message.values = sizeof(T) == 8 ? WireValue::fp64 : WireValue::fp32;
    const bool sparse = m == 13;
    message.positions = sparse ? Positions::list : Positions::all;
    message.num_sent = sparse ? 2 : kLength;
    message.value.resize_discard(message.num_sent);
    const auto values = noise<T>(message.num_sent, 50 + m);
    std::copy(values.begin(), values.end(), message.value.begin());
    message.silent = m == 9;
    if (sparse) {
      message.index.resize_discard(2);
      message.index[0] = 20, message.index[1] = 21;
      message.counts.resize_discard(1);
      message.counts[0] = 2;
    }
    pointers.push_back(m == 30 ? nullptr : &message);
  }
  const auto start = noise<double>(kLength, 8);
  for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{0, kLength}, {7, 100}, {64, 64}}) {
    auto one_by_one = start, together = start;
    for (std::size_t m = 0; m < kMessages; ++m)
      if (pointers[m] != nullptr) accumulate(*pointers[m], scope, weights[m], first, last, one_by_one.data());
    accumulate<T>(pointers, scope, weights, first, last, together.data());
    ASSERT_TRUE(same_bits(together, one_by_one)) << first << " to " << last;
  }
}

TYPED_TEST(PayloadOpsTest, UnsentExcludedTensorsAreZero) {
  using T = TypeParam;
  std::mt19937_64 random(11);
  const Scope scope = test::any_scope(60, 7, true);
  Payload<T> message;
  test::fill_payload(message, scope, 60, Positions::all, WireValue::fp32, {}, 1, random);
  message.excluded.resize_discard(0);
  std::vector<T> out(60, T(9));
  write_dense(message, scope, out.data());
  for (const Segment& tensor : scope.excluded) {
    for (std::size_t j = tensor.begin; j < tensor.end; ++j) EXPECT_EQ(out[j], T(0));
  }
  EXPECT_EQ(std::count(out.begin(), out.end(), T(9)), 0);
}

TYPED_TEST(PayloadOpsTest, ExcludedValuesThatFitNothingThrow) {
  using T = TypeParam;
  std::mt19937_64 random(12);
  const Scope scope = test::any_scope(60, 7, true);
  Payload<T> message;
  test::fill_payload(message, scope, 33, Positions::all, WireValue::fp32, {}, 1, random);
  message.excluded.resize_discard(num_excluded(scope));
  std::vector<T> out(60);
  EXPECT_THROW(add_scaled(message, scope, T(1), out.data()), Error);
}

}  // namespace
}  // namespace fl
