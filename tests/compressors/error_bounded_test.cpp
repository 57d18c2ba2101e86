// Tests sz and zfp: messages that were computed by hand, plain loops, the bound of each entry near its limits, and receivers whose peers
// send anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/message/payload_ops.hpp"
#include "fl_core/random/random.hpp"
#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

using Settings = std::vector<std::pair<std::string, Value>>;

Value text(const char* s) { return Value{std::string(s)}; }
Settings bounded(double bound, const char* option = nullptr, const char* value = nullptr) {
  Settings settings = {{"error_bound", Value{bound}}};
  if (option != nullptr) settings.emplace_back(option, text(value));
  return settings;
}
const char* const kBoth[] = {"sz", "zfp"};

// Margin and range of compressors/error_bound.hpp.
template <class T>
constexpr double kMargin = sizeof(T) == sizeof(float) ? 0x1p-7 : 0x1p-16;
template <class T>
constexpr double kRange = sizeof(T) == sizeof(float) ? 0x1p16 : 0x1p26;
template <class T>
double grid_of(double bound) {
  return static_cast<double>(static_cast<T>(2 * bound * (1 - kMargin<T>)));
}

Scope matrix(std::size_t rows, std::size_t cols) { return {ScopeKind::tensor, {{0, rows * cols, rows, cols}}, {}, rows * cols}; }

template <class T>
std::vector<std::int32_t> levels_of(const Payload<T>& message) {
  std::vector<std::int32_t> levels;
  for (std::size_t i = 0; i < message.on_wire().num_sent; ++i) levels.push_back(message.on_wire().level(i));
  return levels;
}
using Levels = std::vector<std::int32_t>;

// Returns what a receiver reads from the encoded message.
template <class T>
std::vector<T> received(Compressor<T>& op, const Payload<T>& message, const Scope& scope) {
  Conversation<T> conversation(op, scope, 99);
  conversation.open(1);
  const MessageLevels known = conversation.known_levels();
  const codec::Channel<T> channel{&message.on_wire(), &scope, {}, known};
  std::vector<std::byte> bytes;
  codec::encode<T>(std::span(&channel, 1), bytes);
  Payload<T> decoded;
  Payload<T>* const targets[] = {&decoded};
  const Scope* const scopes[] = {&scope};
  const std::size_t lengths[] = {scope.P};
  EXPECT_TRUE(codec::decode<T>(bytes, scopes, lengths, targets, std::span(&known, 1)).ok());
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::uint32_t client = 1;
  conversation.reconstruct(exec, std::span(&client, 1), targets);
  std::vector<T> c(scope.P);
  write_dense(decoded, scope, c.data());
  return c;
}

// Sends x and expects the receiver to read the same numbers; returns the message.
template <class T>
Sent<T> sent_and_received(Compressor<T>& op, const std::vector<T>& x, const Scope& scope) {
  Sent<T> sent(op, x, scope);
  EXPECT_EQ(received(op, sent.message, scope), sent.c);
  return sent;
}

template <class T>
double largest_error(const std::vector<T>& c, const std::vector<T>& x) {
  long double largest = 0;
  for (std::size_t j = 0; j < x.size(); ++j) largest = std::max(largest, std::fabs(static_cast<long double>(c[j]) - x[j]));
  return static_cast<double>(largest);
}

// ---- sz ----

// A ramp of one step per number: each number is one above the one before it, the first one above zero.
TEST(Sz, DifferencesOfARampAreOne) {
  const auto op = make_operator<double>("sz", bounded(0.5));
  const double t = grid_of<double>(0.5);
  std::vector<double> x, expected;
  for (int j = 1; j <= 1000; ++j) {
    expected.push_back(t * j);
    x.push_back(t * (j + 0.3 * std::sin(j)));
  }
  const Sent<double> sent = sent_and_received(*op, x, whole_vector(1000));
  EXPECT_EQ(sent.c, expected);
  EXPECT_EQ(levels_of(sent.message), Levels(1000, 1));
  EXPECT_EQ(sent.message.on_wire().level_format.bits, 2);
  EXPECT_EQ(op->published_bits(sent.message, whole_vector(1000)), 2000);
  EXPECT_LT(wire_bits(*op, sent.message, whole_vector(1000)), 200u) << "one level only costs next to nothing in the entropy code";
  const auto plain = make_operator<double>("sz", bounded(0.5, "predictor", "none"));
  EXPECT_EQ(Sent<double>(*plain, x, whole_vector(1000)).c, expected);
  EXPECT_GT(wire_bits(*plain, Sent<double>(*plain, x, whole_vector(1000)).message, whole_vector(1000)), 9000u);
}

// q = 1 2 3 4 / 2 3 4 5 / 4 5 6 9: planes predict all but the first column, the first row and the last number.
TEST(Sz, PlanesPredictFromThreeNeighbours) {
  const double t = grid_of<float>(0.25);
  std::vector<float> x;
  for (const int q : {1, 2, 3, 4, 2, 3, 4, 5, 4, 5, 6, 9}) x.push_back(static_cast<float>(t * q));
  const auto plane = make_operator<float>("sz", bounded(0.25, "predictor", "plane"));
  const Sent<float> sent = sent_and_received(*plane, x, matrix(3, 4));
  EXPECT_EQ(levels_of(sent.message), (Levels{1, 1, 1, 1, 1, 0, 0, 0, 2, 0, 0, 2}));
  EXPECT_EQ(sent.c, x);
  // A vector has no plane; segments do not look at each other.
  const Scope two = {ScopeKind::tensor, {{0, 5, 5, 1}, {5, 12, 7, 1}}, {}, 12};
  EXPECT_EQ(levels_of(sent_and_received(*plane, x, two).message), (Levels{1, 1, 1, 1, -2, 3, 1, 1, -1, 1, 1, 3}));
  const auto previous = make_operator<float>("sz", bounded(0.25));
  EXPECT_EQ(levels_of(sent_and_received(*previous, x, matrix(3, 4)).message), (Levels{1, 1, 1, 1, -2, 1, 1, 1, -1, 1, 1, 3}));
}

// Differences of numbers that alternate are twice as large, and four times on a plane.
TEST(Sz, DifferencesNeedWiderLevels) {
  std::vector<double> x(9 * 8);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = (j + j / 8) % 2 == 0 ? 100 : -100;
  for (const auto& [predictor, top] : std::vector<std::pair<const char*, std::int32_t>>{{"none", 100}, {"previous", 200}, {"plane", 400}}) {
    const auto op = make_operator<double>("sz", bounded(0.5, "predictor", predictor));
    EXPECT_EQ(sent_and_received(*op, x, matrix(9, 8)).message.on_wire().level_format.min_level, -top) << predictor;
  }
}

TEST(Sz, ZerosAndSmallNumbersCostAHeader) {
  for (const char* predictor : {"none", "previous", "plane"}) {
    const auto op = make_operator<float>("sz", bounded(0.5, "predictor", predictor));
    for (const float x : {0.0F, 0.49F}) {
      const Sent<float> sent = sent_and_received(*op, std::vector<float>(1000, x), matrix(40, 25));
      EXPECT_EQ(sent.message.num_sent, 0u);
      EXPECT_LT(wire_bits(*op, sent.message, matrix(40, 25)), 32u);
    }
  }
}

// ---- zfp ----

// Row k of the orthonormal cosine transform of length n.
double cosine(std::size_t n, std::size_t k, std::size_t i) {
  const double length = k == 0 ? 1 : 2;
  return std::sqrt(length / static_cast<double>(n)) *
         std::cos(M_PI * (2 * static_cast<double>(i) + 1) * static_cast<double>(k) / (2 * static_cast<double>(n)));
}
const double kGain = 1 + std::cos(M_PI / 8);

// A block that is 7 times the product of the second cosine down and the first one across, and 3 times the mean, has these levels alone.
TEST(Zfp, LevelsOfASquareOfTwoCosines) {
  const double h = 2 * 0.5 * (1 - kMargin<double>) / (kGain * kGain);
  std::vector<double> x(16);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) x[4 * i + j] = h * (7.2 * cosine(4, 2, i) * cosine(4, 1, j) - 2.9 * 0.25);
  const auto op = make_operator<double>("zfp", bounded(0.5, "block", "square"));
  const Sent<double> sent = sent_and_received(*op, x, matrix(4, 4));
  EXPECT_EQ(levels_of(sent.message), (Levels{-3, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0}));
  for (std::size_t j = 0; j < 16; ++j) EXPECT_NEAR(sent.c[j], h * (7 * cosine(4, 2, j / 4) * cosine(4, 1, j % 4) - 0.75), 1e-14);
  EXPECT_EQ(op->published_bits(sent.message, matrix(4, 4)), 16 * 4);
}

// Five equal numbers: a block whose mean counts twice, and a number on its own.
TEST(Zfp, LevelsOfALine) {
  const double h = 2 * 0.5 * (1 - kMargin<float>) / kGain;
  const auto op = make_operator<float>("zfp", bounded(0.5));
  const Sent<float> sent = sent_and_received(*op, std::vector<float>(5, static_cast<float>(3 * h)), whole_vector(5));
  EXPECT_EQ(levels_of(sent.message), (Levels{6, 0, 0, 0, 3}));
  const Sent<float> steps = sent_and_received(*op, std::vector<float>{1, 1, -1, -1, 2}, whole_vector(5));
  EXPECT_EQ(levels_of(steps.message), (Levels{0, 4, 0, -1, 4}));  // y = 2 (cos(pi/8) -+ sin(pi/8)) / sqrt(2) = 1.848, -0.765; h = 0.5157
}

// Compares with the transform as sums of cosines, for every shape of a block at an edge.
TEST(Zfp, FollowsSumsOfCosines) {
  const double bound = 0.01;
  const auto op = make_operator<double>("zfp", bounded(bound, "block", "square"));
  RandomSequence random(5, Purpose::synthetic_data);
  for (std::size_t rows = 1; rows <= 9; ++rows)
    for (std::size_t cols = 1; cols <= 70; cols += cols < 9 ? 1 : 61) {
      const bool is_square = rows > 1 && cols > 1;
      const std::size_t R = is_square ? rows : 1, C = is_square ? cols : rows * cols, height = is_square ? 4 : 1;
      const double h = 2 * bound * (1 - kMargin<double>) / (is_square ? kGain * kGain : kGain);
      std::vector<double> x(R * C), expected(R * C);
      for (double& v : x) v = random.normal();
      for (std::size_t i0 = 0; i0 < R; i0 += height)
        for (std::size_t j0 = 0; j0 < C; j0 += 4) {
          const std::size_t m = std::min(height, R - i0), n = std::min<std::size_t>(4, C - j0);
          for (std::size_t k = 0; k < m; ++k)
            for (std::size_t l = 0; l < n; ++l) {
              double y = 0;
              for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j) y += cosine(m, k, i) * cosine(n, l, j) * x[(i0 + i) * C + j0 + j];
              y = h * std::rint(y / h);
              for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j) expected[(i0 + i) * C + j0 + j] += cosine(m, k, i) * cosine(n, l, j) * y;
            }
        }
      const Sent<double> sent = sent_and_received(*op, x, matrix(rows, cols));
      EXPECT_LT(largest_error(sent.c, expected), 1e-13) << rows << " x " << cols;
    }
}

// Smooth numbers have few large coefficients and small differences.
TEST(ErrorBounded, SmoothNumbersTakeFewerBits) {
  std::vector<double> x(64 * 64);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 64; ++j) x[64 * i + j] = std::sin(0.05 * static_cast<double>(i)) * std::cos(0.04 * static_cast<double>(j));
  const auto bits = [&](const char* name, const char* option, const char* value) {
    const auto op = make_operator<double>(name, bounded(1e-3, option, value));
    return wire_bits(*op, sent_and_received(*op, x, matrix(64, 64)).message, matrix(64, 64));
  };
  const std::uint64_t none = bits("sz", "predictor", "none"), previous = bits("sz", "predictor", "previous"),
                      plane = bits("sz", "predictor", "plane"), line = bits("zfp", "block", "line"),
                      square = bits("zfp", "block", "square");
  EXPECT_LT(2 * previous, none);
  EXPECT_LT(plane, previous);
  EXPECT_LT(line, none);
  EXPECT_LT(square, line);
}

// ---- the bound ----

template <class T>
void expect_bound(const std::string& name, const Settings& settings, double bound, const std::vector<T>& x, const Scope& scope,
                  const std::string& of) {
  SCOPED_TRACE(name + ", " + to_string(settings.back().second) + ", bound " + std::to_string(bound) + ", " + of);
  const auto op = make_operator<T>(name, settings);
  const Sent<T> sent(*op, x, scope);
  EXPECT_LE(largest_error(sent.c, x), bound);
  EXPECT_LE(std::sqrt(std::inner_product(x.begin(), x.end(), sent.c.begin(), 0.0, std::plus<>(),
                                         [](double a, double c) { return (c - a) * (c - a); })),
            *op->contract(scope).kappa * (1 + 1e-9));
}

// Calls visit(name, settings) for both operators with each of their options.
template <class Visit>
void for_each_kind(double bound, Visit visit) {
  for (const char* predictor : {"none", "previous", "plane"}) visit("sz", bounded(bound, "predictor", predictor));
  for (const char* block : {"line", "square"}) visit("zfp", bounded(bound, "block", block));
}

// Numbers near the middle between two steps, and as large as levels reach, in shapes that no block divides.
template <class T>
void expect_bound_everywhere() {
  RandomSequence random(8, Purpose::synthetic_data);
  const double smallest = std::numeric_limits<T>::min();
  for (const double bound : {0.01, 1.0 / 3, 0.5, 1e-3, smallest, 5 * smallest, 1e30})
    for (const Scope& scope : {matrix(1, 1), matrix(1, 3), matrix(5, 1), matrix(7, 9), matrix(66, 67), matrix(4, 129)})
      for (const double size : {0.1, 1.0, 3.0, 1000.0, kRange<T>, 2 * kRange<T>}) {
        std::vector<T> x(scope.P), ties(scope.P);
        for (T& v : x) v = static_cast<T>(bound * size * (2 * random.uniform() - 1));
        for (T& v : ties) v = static_cast<T>(grid_of<T>(bound) * (std::floor(size * (random.uniform() - 0.5)) + 0.5));
        for_each_kind(bound, [&](const char* name, const Settings& settings) {
          expect_bound(name, settings, bound, x, scope, "size " + std::to_string(size));
          expect_bound(name, settings, bound, ties, scope, "ties, size " + std::to_string(size));
        });
      }
}
TEST(ErrorBounded, NoEntryExceedsTheBoundInFloat32) { expect_bound_everywhere<float>(); }
TEST(ErrorBounded, NoEntryExceedsTheBoundInFloat64) { expect_bound_everywhere<double>(); }

// Coefficients half a step from their levels, with the signs of the first column of the transform: the error of a transform's worst case.
TEST(Zfp, TheGainIsAttained) {
  const double bound = 0.25;
  for (const bool is_square : {false, true}) {
    const double h = 2 * bound * (1 - kMargin<double>) / (is_square ? kGain * kGain : kGain);
    std::vector<double> x(is_square ? 16 : 4);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double across = cosine(4, k % 4, i % 4), down = is_square ? cosine(4, k / 4, i / 4) : 1;
        x[i] += 0.4999 * h * across * down;  // all entries of the first column are positive
      }
    x.resize(x.size() * 2);
    x.back() = 1;  // without it nothing would be sent
    const Scope scope = is_square ? matrix(8, 4) : whole_vector(8);
    const auto op = make_operator<double>("zfp", bounded(bound, "block", is_square ? "square" : "line"));
    const Sent<double> sent = sent_and_received(*op, x, scope);
    EXPECT_NEAR(std::fabs(sent.c[0] - x[0]), bound, 1e-3 * bound) << is_square;
  }
}

TEST(ErrorBounded, InputsBeyondTheLevelsAreSentAsTheyAre) {
  for (const char* name : kBoth) {
    const auto op = make_operator<float>(name, bounded(1e-6));
    std::vector<float> x(100, 0.01F);
    EXPECT_EQ(Sent<float>(*op, x, whole_vector(100)).message.on_wire().values, WireValue::levels);
    x[7] = 1;  // 10^6 bounds
    const Sent<float> sent = sent_and_received(*op, x, whole_vector(100));
    EXPECT_EQ(sent.c, x);
    EXPECT_EQ(sent.message.values, WireValue::fp32);
    // Twice and four times the largest numbers are no numbers any more.
    const auto wide = make_operator<float>(name, bounded(1e37));
    const std::vector<float> huge = {3e38F, -3e38F, 3e38F, -3e38F, 3e38F, 3e38F};
    EXPECT_EQ(sent_and_received(*wide, huge, whole_vector(6)).c, huge);
    // Bounds below the normal numbers.
    const auto narrow = make_operator<float>(name, bounded(1e-44));
    const std::vector<float> small = {1e-44F, -3e-43F, 2e-42F, 0, 1e-44F, 7e-44F};
    EXPECT_EQ(sent_and_received(*narrow, small, whole_vector(6)).c, small);
  }
}

TEST(ErrorBounded, KappaFollowsTheBound) {
  const Scope scope = matrix(8, 8);
  EXPECT_DOUBLE_EQ(*make_operator<double>("sz", bounded(0.5))->contract(scope).kappa, 4);
  const auto factor = [](double g) { return (1 - kMargin<double>) / g + kMargin<double>; };
  EXPECT_DOUBLE_EQ(*make_operator<double>("zfp", bounded(0.5))->contract(scope).kappa, 4 * factor(kGain));
  const auto square = make_operator<double>("zfp", bounded(0.5, "block", "square"));
  EXPECT_DOUBLE_EQ(*square->contract(scope).kappa, 4 * factor(kGain * kGain));
  EXPECT_DOUBLE_EQ(*square->contract(whole_vector(64)).kappa, 4 * factor(kGain)) << "a vector has no squares";
  for (const char* name : kBoth) {
    const auto op = make_operator<double>(name, bounded(0.5, "rule", "lambda"));
    EXPECT_DOUBLE_EQ(op->kappa_at(scope, {.in_input = 0.1}), *op->contract(scope).kappa / 10);
    EXPECT_EQ(to_string(op->contract(scope).domain), "at step size 1");
    EXPECT_TRUE(make_operator<double>(name, bounded(0.5))->contract(scope).domain.is_everywhere());
    EXPECT_THROW(make_operator<double>(name, bounded(0)), ConfigError);
    const auto rule = make_operator<double>(name, {{"error_bound", text("sqrt(epsilon/d)")}, {"epsilon", Value{0.64}}});
    EXPECT_NEAR(*rule->contract(scope).kappa, 0.8, name == std::string("sz") ? 1e-12 : 0.4);
  }
}

// ---- receivers ----

// A peer may send levels in a list, as many as it likes, or differences whose sums leave 32 bits.
TEST(ReceivedCodes, AreReadOnlyInTheFormThatTheOperatorSends) {
  const Scope scope = whole_vector(100);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  const std::uint32_t client = 1;
  for (const char* name : {"sz", "zfp", "drive", "eden"}) {
    const auto op = make_operator<float>(name);
    Payload<float> list;
    list.clear(100);
    list.positions = Positions::list;
    list.values = WireValue::levels;
    list.level_format = {.min_level = -1, .bits = 2, .unit = 0.5, .has_scale = false};
    list.num_sent = 2;
    list.index = Buffer<std::uint32_t>(2);
    list.index.data()[0] = 3;
    list.index.data()[1] = 70;
    list.counts = Buffer<std::uint32_t>(1);
    list.counts.data()[0] = 2;
    list.level_bytes = Buffer<std::byte>(2);
    list.levels<std::int8_t>()[0] = list.levels<std::int8_t>()[1] = 1;
    Conversation<float> conversation(*op, scope, 99);
    conversation.open(1);
    Payload<float>* const messages[] = {&list};
    conversation.reconstruct(exec, std::span(&client, 1), messages);
    EXPECT_EQ(list.num_sent, 2u) << name;
    EXPECT_EQ(list.positions, Positions::list) << name;
    EXPECT_EQ(list.values, WireValue::levels) << name;
  }
}

TEST(ReceivedCodes, SumsOfDifferencesWrapAround) {
  const auto op = make_operator<double>("sz", bounded(0.5));
  const Scope scope = whole_vector(8);
  Payload<double> message;
  message.clear(8);
  message.values = WireValue::levels;
  message.level_format = {.min_level = -(1 << 29), .bits = 31, .unit = grid_of<double>(0.5), .has_scale = false};
  message.level_width = LevelWidth::w32;
  message.num_sent = 8;
  message.level_bytes = Buffer<std::byte>(32);
  std::fill_n(message.levels<std::int32_t>(), 8, 1 << 29);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Conversation<double> conversation(*op, scope, 99);
  conversation.open(1);
  const std::uint32_t client = 1;
  Payload<double>* const messages[] = {&message};
  conversation.reconstruct(exec, std::span(&client, 1), messages);
  ASSERT_EQ(message.values, WireValue::fp64);
  for (int j = 0; j < 8; ++j) {
    const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(j + 1) << 29);
    EXPECT_EQ(message.value.data()[j], grid_of<double>(0.5) * sum) << j;
  }
}

// Zeros are a list without entries, and other numbers are levels or raw numbers of every entry: no part of a joined message.
TEST(ErrorBounded, LayersCannotDifferInIt) {
  for (const char* name : {"sz", "zfp", "absolute_rounding"}) {
    Value part;
    part.data = Value::Table{{"kind", text(name)}};
    const auto op = make_operator<double>("accordion", {{"critical", part}, {"otherwise", part}});
    EXPECT_THROW(op->check(whole_vector(50)), ConfigError) << name;
  }
}

// A schedule undoes the code of the stage that sent it.
TEST(ReceivedCodes, StagesOfAScheduleAreUndone) {
  const auto part = [](const char* kind) {
    Value value;
    value.data = Value::Table{{"kind", text(kind)}};
    return value;
  };
  Value stages, from;
  stages.data = Value::List{part("sz"), part("drive"), part("zfp")};
  from.data = Value::List{Value{std::int64_t{1}}, Value{std::int64_t{2}}, Value{std::int64_t{3}}};
  const std::vector<double> x = {0.3, -1.2, 0.7, 0.71, 0.02, -0.5, 0.9};
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const auto op = make_operator<double>("schedule", {{"stages", stages}, {"from", from}});
    const Scope scope = whole_vector(7);
    const Sent<double> sent(*op, x, scope, 1, round);
    Payload<double> code;
    code.clear(7);
    code.values = WireValue::levels;
    const Payload<double>& wire = sent.message.on_wire();
    code.level_format = wire.level_format;
    code.level_width = wire.level_width;
    code.num_sent = wire.num_sent;
    code.level_bytes = Buffer<std::byte>(wire.level_bytes.size());
    std::copy(wire.level_bytes.begin(), wire.level_bytes.end(), code.level_bytes.begin());
    code.scale = Buffer<double>(wire.scale.size());
    std::copy(wire.scale.begin(), wire.scale.end(), code.scale.begin());
    Workspace workspace;
    Exec exec;
    exec.workspace = &workspace;
    Conversation<double> conversation(*op, scope, 99);
    conversation.open(round);
    const std::uint32_t client = 1;
    Payload<double>* const messages[] = {&code};
    conversation.reconstruct(exec, std::span(&client, 1), messages);
    std::vector<double> c(7);
    write_dense(code, scope, c.data());
    EXPECT_EQ(c, sent.c) << round;
  }
}

}  // namespace
}  // namespace fl::test
