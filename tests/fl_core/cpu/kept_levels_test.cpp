// Compares levels of kept entries with plain loops: a segment's numbers are computed from its kept entries, and the state is the remainder.
#include "fl_core/ops/cpu/kept_levels.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "fl_core/ops/cpu/ops.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"

namespace fl::cpu {
namespace {

template <class T>
class KeptLevels : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(KeptLevels, Precisions);

struct PositiveOf {
  template <class T>
  double operator()(T p) const {
    return p > 0 ? static_cast<double>(p) : 0;
  }
};
// The nearer of two numbers.
struct Nearer {
  template <class T>
  std::int32_t operator()(T p, const T* two, std::uint32_t, std::size_t) const {
    return std::abs(p - two[1]) < std::abs(p - two[0]) ? 1 : 0;
  }
};

// The second of three segments keeps nothing.
TYPED_TEST(KeptLevels, NumbersOfWhatWasKept) {
  using T = TypeParam;
  constexpr std::size_t kP = 12;
  const Scope scope{.kind = ScopeKind::bucket, .segments = {{0, 4, 4, 1}, {4, 8, 4, 1}, {8, 12, 4, 1}}, .excluded = {}, .P = kP};
  const std::vector<T> p = {T(3), T(-1), T(0.25), T(-4), T(0.5), T(0.5), T(0), T(0), T(2), T(9), T(-3), T(0)};
  std::vector<T> state(kP, T(-7));
  const Affine<T> input = Affine<T>{}.add(T(1), {p.data(), nullptr, 1, kP, kP});
  const StateWrite<T> write{StateRule::residual, {state.data(), nullptr, 1, kP, kP}};
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Payload<T> message;
  message.clear(kP);
  Payload<T>* out[] = {&message};
  const std::span<Payload<T>* const> messages(out);
  select_rows(exec, input, scope, AtLeast<T>{T(1)}, kNativeWire<T>, write, messages);
  ASSERT_EQ(message.num_sent, 6U);

  std::vector<double> sum(3), largest(3);
  reduce_kept(exec, scope, messages, PositiveOf{}, Reduce::sum, sum.data());
  reduce_kept(exec, scope, messages, MagnitudeOf{}, Reduce::max, largest.data());
  EXPECT_EQ(sum, (std::vector<double>{3, 0, 11}));
  EXPECT_EQ(largest, (std::vector<double>{4, 0, 9}));

  const std::vector<T> two = {T(-2), T(2.5), T(5), T(6), T(-3), T(5.5)};
  encode_kept(exec, scope, two_value_format(), LevelWidth::w8, two.data(), Nearer{}, write, messages);
  ASSERT_EQ(message.values, WireValue::levels);
  ASSERT_EQ(message.scale.size(), two.size());
  const std::vector<std::int32_t> levels = {1, 0, 0, 1, 1, 0};
  for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_EQ(message.level(i), levels[i]) << i;
  const std::vector<T> expected = {T(0.5), T(1), T(0.25), T(-2), T(0.5), T(0.5), T(0), T(0), T(-3.5), T(3.5), T(0), T(0)};
  EXPECT_EQ(state, expected);
}

}  // namespace
}  // namespace fl::cpu
