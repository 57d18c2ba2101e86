// Compares the fused operations with plain loops over the definitions, on sizes around a tile, in every format and width.
#include "fl_core/ops/cpu/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fl_core/message/layer_table.hpp"

namespace fl::cpu {
namespace {

// A level that depends on all that a quantiser is given and stays within -100 .. 100.
struct Mixed {
  std::int32_t lowest;
  template <class T>
  std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t segment) const {
    const auto x = static_cast<std::int32_t>(p * T(8)) + static_cast<std::int32_t>(scale) + static_cast<std::int32_t>(word >> 28) +
                   static_cast<std::int32_t>(segment % 5);
    const std::int32_t folded = x % 101;
    return folded < lowest ? -folded : folded;
  }
};

template <class T>
struct Setup {
  static constexpr std::uint32_t kClients = 2;
  explicit Setup(const Scope& scope_) : scope(scope_), a(kClients * scope.P), b(kClients * scope.P), state(kClients * scope.P, T(-5)) {
    RandomSequence random(4, Purpose::synthetic_data);
    for (T& x : a) x = static_cast<T>(random.normal());
    for (T& x : b) x = static_cast<T>(random.normal());
    for (std::uint32_t k = 0; k < kClients; ++k) streams.emplace_back(77, k, 3);
    exec.workspace = &workspace;
  }
  [[nodiscard]] Affine<T> input() const {
    Affine<T> affine;
    return affine.add(T(1), {a.data(), nullptr, kClients, scope.P, scope.P}).add(T(-0.25), {b.data(), nullptr, kClients, scope.P, scope.P});
  }
  [[nodiscard]] StateWrite<T> write(StateRule rule) { return {rule, {state.data(), nullptr, kClients, scope.P, scope.P}}; }

  // Levels, scales and state by the definitions.
  void expect(const LevelFormat& format, const std::vector<T>& scale, Mixed q, bool with_words) const {
    const std::size_t S = scope.segments.size();
    for (std::uint32_t k = 0; k < kClients; ++k) {
      std::size_t i = 0;
      for (std::size_t s = 0; s < S; ++s) {
        const T segment_scale = format.has_scale ? scale[k * S + s] : T(1);
        if (format.has_scale) {
          ASSERT_EQ(message[k].scale[s], segment_scale);
        }
        for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j, ++i) {
          const T p = input().at(k, j);
          const std::int32_t level = q(p, segment_scale, with_words ? streams[k].bits(j) : 0u, s);
          ASSERT_EQ(message[k].level(i), level) << "client " << k << " parameter " << j;
          ASSERT_EQ(state[k * scope.P + j], p - level_value(format, level, segment_scale)) << "client " << k << " parameter " << j;
        }
      }
      ASSERT_EQ(message[k].num_sent, i);
    }
  }

  Scope scope;
  std::vector<T> a, b, state;
  std::vector<RandomStream> streams;
  Payload<T> message[kClients];
  Payload<T>* out[kClients] = {&message[0], &message[1]};
  Workspace workspace;
  Exec exec;
};

// Segments of the given sizes with a gap (an excluded tensor) of 3 in front of each.
Scope gapped(const std::vector<std::size_t>& sizes) {
  Scope scope;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    scope.excluded.push_back({at, at + 3, 3, 1});
    scope.segments.push_back({at + 3, at + 3 + size, size, 1});
    at += 3 + size;
  }
  scope.P = at;
  return scope;
}

LevelFormat format_of(LevelMap map) {
  LevelFormat format;
  format.map = map;
  format.bits = 8;
  format.min_level = -127;
  format.min_exponent = -60;
  format.unit = 1.0 / 3;
  format.has_scale = map != LevelMap::power_of_two;
  return format;
}

template <class T>
class Quantize : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Quantize, Precisions);

TYPED_TEST(Quantize, RowsEqualTheDefinition) {
  using T = TypeParam;
  const Scope scope = gapped({1, 2, 17, 2047, 2048, 2049, 5000});
  for (const LevelMap map : {LevelMap::linear, LevelMap::sign, LevelMap::power_of_two}) {
    for (const LevelWidth width : {LevelWidth::w8, LevelWidth::w16, LevelWidth::w32}) {
      for (const bool with_words : {true, false}) {
        Setup<T> setup(scope);
        std::vector<T> scale;
        for (std::size_t i = 0; i < 2 * scope.segments.size(); ++i) scale.push_back(static_cast<T>(i) + T(0.1));
        const LevelFormat format = format_of(map);
        const std::span<const RandomStream> streams =
            with_words ? std::span<const RandomStream>(setup.streams) : std::span<const RandomStream>();
        quantize_rows(setup.exec, setup.input(), scope, format, width, scale.data(), Mixed{30}, streams, setup.write(StateRule::residual),
                      std::span<Payload<T>* const>(setup.out));
        setup.expect(format, scale, Mixed{30}, with_words);
      }
    }
  }
}

TYPED_TEST(Quantize, PowersWithoutAVariableShiftAreThoseOfTheDefinition) {
  using T = TypeParam;
  LevelFormat format = format_of(LevelMap::power_of_two);
  format.bits = sizeof(T) == sizeof(float) ? 9 : 12;
  format.min_level = 1 - (1 << (format.bits - 1));
  format.min_exponent = sizeof(T) == sizeof(float) ? -127 : -1023;
  using Power = detail::NormalPowerValue<T>;
  ASSERT_TRUE(Power::holds(format));
  const Power value{};
  for (std::int32_t level = format.min_level; level <= -format.min_level; ++level)
    ASSERT_EQ(value(level), level_value(format, level, T(1))) << level;
  for (const int too_small : {1, 5}) {
    LevelFormat smaller = format;
    smaller.min_exponent -= too_small;
    EXPECT_FALSE(Power::holds(smaller));
  }
  LevelFormat larger = format, scaled = format;
  ++larger.min_exponent;
  scaled.has_scale = true;
  EXPECT_FALSE(Power::holds(larger));
  EXPECT_FALSE(Power::holds(scaled));
}

// Decides by all the numbers of the segment; levels are those of the format.
struct ByNumbers {
  std::int32_t min, count;
  std::size_t n;
  template <class T>
  std::int32_t operator()(T p, const T* number, std::uint32_t word, std::size_t segment) const {
    T sum = p * T(8);
    for (std::size_t i = 0; i < n; ++i) sum += number[i];
    return min + static_cast<std::int32_t>((static_cast<std::uint32_t>(static_cast<std::int32_t>(sum)) + (word >> 28) + segment) %
                                           static_cast<std::uint32_t>(count));
  }
};

// Formats with tables, several scales or numbers of their own: levels from the scales, or from parameters that stay at the sender.
TYPED_TEST(Quantize, MapsWithNumbersOfTheirOwn) {
  using T = TypeParam;
  const Scope scope = gapped({1, 17, 2048, 5000});
  const std::size_t S = scope.segments.size();
  const std::vector<std::pair<LevelFormat, std::int32_t>> formats = {{two_value_format(), 2},
                                                                     {table_format(200, -100), 200},
                                                                     {table_format(3), 3},
                                                                     {dynamic_tree_format(), 255},
                                                                     {dynamic_tree_format(false), 255},
                                                                     {fp8_format(LevelMap::fp8_e4m3), 255},
                                                                     {fp8_format(LevelMap::fp8_e5m2, false), 120}};
  for (const auto& [format, count] : formats) {
    const std::size_t n = scales_per_segment(format), m = 5;
    for (const bool own_parameters : {false, true}) {
      for (const LevelWidth width : {LevelWidth::w16, LevelWidth::w32}) {
        Setup<T> setup(scope);
        std::vector<T> scale, parameter;
        for (std::size_t i = 0; i < 2 * S * n; ++i) scale.push_back(static_cast<T>(i) * T(0.7) - T(5));
        for (std::size_t i = 0; i < 2 * S * m; ++i) parameter.push_back(static_cast<T>(i) * T(1.5));
        const ByNumbers q{format.min_level, count, own_parameters ? m : n};
        const std::span<const RandomStream> streams(setup.streams);
        const std::span<Payload<T>* const> out(setup.out);
        const StateWrite<T> state = setup.write(StateRule::residual);
        if (own_parameters)
          encode_levels_rows(setup.exec, setup.input(), scope, format, width, scale.data(), parameter.data(), m, q, streams, state, out);
        else
          quantize_rows(setup.exec, setup.input(), scope, format, width, scale.data(), q, streams, state, out);
        for (std::uint32_t k = 0; k < 2; ++k) {
          ASSERT_EQ(setup.message[k].scale.size(), S * n);
          std::size_t i = 0;
          for (std::size_t s = 0; s < S; ++s) {
            const std::size_t piece = k * S + s;
            const T* scales = scale.data() + piece * n;
            const T* numbers = own_parameters ? parameter.data() + piece * m : scales;
            ASSERT_TRUE(std::equal(scales, scales + n, setup.message[k].scale.data() + s * n));
            for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j, ++i) {
              const T p = setup.input().at(k, j);
              const std::int32_t level = q(p, numbers, setup.streams[k].bits(j), s);
              ASSERT_EQ(setup.message[k].level(i), level);
              const T expected = p - level_value(format, level, scales);
              ASSERT_EQ(std::isnan(setup.state[k * scope.P + j]), std::isnan(expected));
              if (!std::isnan(expected)) {
                ASSERT_EQ(setup.state[k * scope.P + j], expected);
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(Quantize, FusedScalesAreThoseOfReduceRows) {
  using T = TypeParam;
  const Scope scope = gapped({1, 2, 512, 513, 2047, 2048, 2049, 5000});
  for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
    Setup<T> setup(scope);
    std::vector<double> reduced(2 * scope.segments.size());
    reduce_rows(setup.exec, setup.input(), scope, MagnitudeOf{}, reduce, reduced.data());
    std::vector<T> scale;
    const auto scale_of = [](double value, std::size_t size) { return static_cast<T>(value / static_cast<double>(size)); };
    for (std::size_t i = 0; i < reduced.size(); ++i)
      scale.push_back(scale_of(reduced[i], scope.segments[i % scope.segments.size()].size()));
    const LevelFormat format = format_of(LevelMap::linear);
    quantize_segments_fused(setup.exec, setup.input(), scope, format, LevelWidth::w8, MagnitudeOf{}, reduce, scale_of, Mixed{30},
                            std::span<const RandomStream>(setup.streams), setup.write(StateRule::residual),
                            std::span<Payload<T>* const>(setup.out));
    setup.expect(format, scale, Mixed{30}, true);
  }
}

TYPED_TEST(Quantize, StateMayLieOverTheInput) {
  using T = TypeParam;
  const Scope scope = gapped({600, 5000});
  for (const bool plain : {true, false}) {  // plain: the input is one vector times 1, which tiles read where it lies
    Setup<T> apart(scope), over(scope);
    const auto input_of = [&](const Setup<T>& s) {
      Affine<T> affine;
      affine.add(T(1), {s.a.data(), nullptr, 2, scope.P, scope.P});
      return plain ? affine : s.input();
    };
    const auto run = [&](Setup<T>& s, T* state) {
      quantize_segments_fused(
          s.exec, input_of(s), scope, format_of(LevelMap::linear), LevelWidth::w8, SquareOf{}, Reduce::sum,
          [](double v, std::size_t) { return static_cast<T>(std::sqrt(v)); }, Mixed{30}, std::span<const RandomStream>(s.streams),
          {StateRule::residual, {state, nullptr, 2, scope.P, scope.P}}, std::span<Payload<T>* const>(s.out));
    };
    run(apart, apart.state.data());
    run(over, over.a.data());
    for (const Segment& segment : scope.segments)
      for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t j = segment.begin; j < segment.end; ++j) ASSERT_EQ(over.a[k * scope.P + j], apart.state[k * scope.P + j]) << j;
  }
}

TYPED_TEST(Quantize, RulesForTheState) {
  using T = TypeParam;
  const Scope scope = gapped({5, 3000});
  for (const StateRule rule : {StateRule::none, StateRule::zero_where_sent}) {
    Setup<T> setup(scope);
    const std::vector<T> scale(4, T(1));
    quantize_rows(setup.exec, setup.input(), scope, format_of(LevelMap::linear), LevelWidth::w8, scale.data(), Mixed{30}, {},
                  setup.write(rule), std::span<Payload<T>* const>(setup.out));
    for (const Segment& segment : scope.segments)
      for (std::size_t j = segment.begin; j < segment.end; ++j) ASSERT_EQ(setup.state[j], rule == StateRule::none ? T(-5) : T(0));
    for (const Segment& gap : scope.excluded)
      for (std::size_t j = gap.begin; j < gap.end; ++j) ASSERT_EQ(setup.state[j], T(-5));
  }
}

}  // namespace
}  // namespace fl::cpu
