#include "compressors/codec/positions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "fl_core/error.hpp"

namespace fl::codec {
namespace {

Segment segment(std::size_t begin, std::size_t end) { return Segment{.begin = begin, .end = end, .rows = end - begin, .cols = 1}; }

// The costs by their definitions, every Rice parameter tried.
PositionCosts by_definition(const std::vector<std::uint32_t>& index, const Segment& s) {
  PositionCosts costs;
  std::vector<std::uint64_t> gaps;
  std::uint64_t next = s.begin;
  for (const std::uint32_t j : index) {
    gaps.push_back(j - next);
    next = std::uint64_t{j} + 1;
  }
  costs.rice = ~std::uint64_t{0};
  for (unsigned k = 0; k < 32; ++k) {
    std::uint64_t sum = 5;
    for (const std::uint64_t g : gaps) sum += (g >> k) + 1 + k;
    if (sum < costs.rice) {
      costs.rice = sum;
      costs.rice_parameter = static_cast<std::uint8_t>(k);
    }
  }
  for (const std::uint64_t g : gaps) costs.gamma += 2 * static_cast<std::uint64_t>(std::bit_width(g + 1)) - 1;
  costs.bitmap = s.size();
  std::uint64_t width = 0;
  while ((std::uint64_t{1} << width) < s.size()) ++width;
  costs.fixed = index.size() * width;
  return costs;
}

void expect_exact(const std::vector<std::uint32_t>& index, const Segment& s) {
  const PositionCosts costs = position_costs(index, s), expected = by_definition(index, s);
  EXPECT_EQ(costs.rice, expected.rice);
  EXPECT_EQ(costs.rice_parameter, expected.rice_parameter);
  EXPECT_EQ(costs.gamma, expected.gamma);
  EXPECT_EQ(costs.bitmap, expected.bitmap);
  EXPECT_EQ(costs.fixed, expected.fixed);
  const PositionPlan plan = plan_positions(index, s);
  EXPECT_EQ(plan.bits, gamma_bits(index.size() + 1) + 2 + std::min({expected.rice, expected.gamma, expected.bitmap, expected.fixed}));
}

// Every code, forced, brings the positions back in exactly the bits that it was said to take.
void expect_round_trip(const std::vector<std::uint32_t>& index, const Segment& s) {
  const PositionCosts costs = position_costs(index, s);
  const std::uint64_t bits[] = {costs.rice, costs.gamma, costs.bitmap, costs.fixed};
  for (std::uint8_t code = 0; code < 4; ++code) {
    if (bits[code] > (std::uint64_t{1} << 24)) continue;
    const PositionPlan plan{.code = static_cast<PositionCode>(code),
                            .rice_parameter = costs.rice_parameter,
                            .bits = gamma_bits(index.size() + 1) + 2 + bits[code]};
    std::vector<std::byte> bytes;
    BitWriter writer(bytes);
    writer.put(5, 3);  // off the byte grid
    write_positions(writer, plan, index, s);
    EXPECT_EQ(writer.position(), plan.bits + 3);
    writer.finish();
    BitReader reader(bytes);
    EXPECT_EQ(reader.get(3), 5U);
    std::size_t count = 0;
    ASSERT_EQ(read_count(reader, s, count), "");
    ASSERT_EQ(count, index.size());
    std::vector<std::uint32_t> back(count);
    ASSERT_EQ(read_positions(reader, s, count, back.data()), "");
    EXPECT_EQ(back, index);
    EXPECT_EQ(reader.position(), plan.bits + 3);
  }
}

std::vector<std::uint32_t> bernoulli(const Segment& s, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution keep(share);
  std::vector<std::uint32_t> index;
  for (std::size_t j = s.begin; j < s.end; ++j) {
    if (keep(random)) index.push_back(static_cast<std::uint32_t>(j));
  }
  return index;
}

TEST(PositionsTest, CostsAreExactAndCodesRoundTrip) {
  for (const std::size_t size : {2U, 3U, 63U, 64U, 65U, 500U, 4097U, 100'000U}) {
    for (const double share : {0.0005, 0.003, 0.02, 0.1, 0.3, 0.6, 0.95}) {
      const Segment s = segment(17, 17 + size);
      const auto index = bernoulli(s, share, size + static_cast<std::uint64_t>(1000 * share));
      if (index.empty() || index.size() == size) continue;
      expect_exact(index, s);
      expect_round_trip(index, s);
    }
  }
}

TEST(PositionsTest, ClusteredAndExtremeGaps) {
  std::mt19937_64 random(9);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t size = 1 + (std::size_t{1} << (trial % 33)), begin = 0;
    const Segment s = segment(begin, std::min<std::size_t>(size, 0xffffffffU));
    std::vector<std::uint32_t> index;
    std::uint64_t at = 0;
    const int spread = trial % 7;
    while (at < s.size() && index.size() < 400) {
      at += random() % (std::uint64_t{1} << (random() % static_cast<std::uint64_t>(5 * spread + 1)));
      if (at < s.size()) index.push_back(static_cast<std::uint32_t>(at));
      ++at;
    }
    if (index.empty() || index.size() == s.size()) continue;
    expect_exact(index, s);
    expect_round_trip(index, s);
  }
  // One kept entry, wherever it lies.
  for (std::uint32_t j = 0; j < 500; ++j) {
    expect_exact({j}, segment(0, 500));
    EXPECT_LE(plan_positions(std::vector<std::uint32_t>{j}, segment(0, 500)).bits, 3U + 2 + 9);
  }
  // A dense run and one far away: the optimum is far from what the mean gap suggests.
  std::vector<std::uint32_t> index(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) index[i] = i;
  index.back() = 4'000'000'000U;
  expect_exact(index, segment(0, 4'294'967'295U));
  index.front() = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) index[i] = 4'000'000 * i;
  for (std::uint32_t i = 500; i < 1000; ++i) index[i] = index[499] + i;
  expect_exact(index, segment(0, 4'294'967'295U));
  expect_round_trip(index, segment(0, 4'294'967'295U));
}

TEST(PositionsTest, NothingAndEverythingNeedNoCode) {
  EXPECT_EQ(plan_positions({}, segment(0, 1000)).bits, 1U);
  std::vector<std::uint32_t> all(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) all[i] = 50 + i;
  EXPECT_EQ(plan_positions(all, segment(50, 1050)).bits, gamma_bits(1001));
  all[500] = all[499];
  EXPECT_THROW((void)plan_positions(all, segment(50, 1050)), Error);
}

TEST(PositionsTest, MalformedCodesAreRefused) {
  const Segment s = segment(10, 110);
  std::vector<std::byte> bytes;
  std::uint32_t index[100];
  const auto refuse = [&](auto write, std::size_t count, const char* word) {
    BitWriter writer(bytes);
    write(writer);
    writer.finish();
    BitReader reader(bytes);
    const std::string wrong = read_positions(reader, s, count, index);
    EXPECT_NE(wrong.find(word), std::string::npos) << wrong;
  };
  refuse([](BitWriter& w) { w.put(2 << 2 | 0, 7), w.put(std::uint64_t{1} << 30, 31), w.put(0, 30); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(0, 7), w.put(0, 64), w.put(0, 64), w.put(0, 64); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(0, 7), w.put(0, 20); }, 2, "ends inside");
  refuse([](BitWriter& w) { w.put(1, 2), w.put_gamma(60), w.put_gamma(60), w.put(0, 60); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(1, 2), w.put(0, 64); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(2, 2), w.put(7, 60), w.put(0, 40); }, 2, "more positions");
  refuse([](BitWriter& w) { w.put(2, 2), w.put(7, 60), w.put(0, 40); }, 4, "holds 3 positions");
  refuse([](BitWriter& w) { w.put(2, 2), w.put(7, 60); }, 3, "ends inside");
  refuse([](BitWriter& w) { w.put(3, 2), w.put(9, 7), w.put(9, 7); }, 2, "not ascending");
  refuse([](BitWriter& w) { w.put(3, 2), w.put(9, 7), w.put(101, 7); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(3, 2), w.put(9, 7); }, 3, "ends inside");
}

// Sattler, Wiedemann, Mueller, Samek, IEEE TNNLS 2020: positions and a sign per kept entry, in bits per parameter, with their rule
//   b = 1 + floor(log2(ln(phi - 1) / ln(1 - p))),   p (b + 1 / (1 - (1 - p)^(2^b)) + 1)
// against the floor H(p) + p.
TEST(PositionsTest, PositionsAndSignsTakeThePublishedBits) {
  struct Row {
    double share, published;
  };
  for (const Row row : {Row{0.1, 0.57558252}, Row{0.01, 0.09107910}, Row{0.0025, 0.02778396}}) {
    const double p = row.share, phi = (1 + std::sqrt(5.0)) / 2;
    const double b = 1 + std::floor(std::log2(std::log(phi - 1) / std::log(1 - p)));
    EXPECT_NEAR(p * (b + 1 / (1 - std::pow(1 - p, std::exp2(b))) + 1), row.published, 5e-9);

    const Segment s = segment(0, 4'000'000);
    const auto index = bernoulli(s, p, 77);
    const PositionCosts costs = position_costs(index, s);
    EXPECT_EQ(costs.rice_parameter, static_cast<int>(b));
    const double per_parameter = static_cast<double>(costs.rice + index.size()) / static_cast<double>(s.size());
    EXPECT_NEAR(per_parameter, row.published, 0.01 * row.published);
  }
  const double p = 0.01;
  EXPECT_NEAR(-p * std::log2(p) - (1 - p) * std::log2(1 - p) + p, 0.09079314, 5e-9);
}

TEST(BitStreamTest, FieldsOfEveryWidthAtEveryOffset) {
  std::mt19937_64 random(4);
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::uint64_t, unsigned>> fields;
  BitWriter writer(bytes);
  std::uint64_t position = 0;
  for (int i = 0; i < 5000; ++i) {
    const unsigned width = static_cast<unsigned>(random() % 65);
    fields.emplace_back(low_bits(random(), width), width);
    writer.put(fields.back().first, width);
    position += width;
    ASSERT_EQ(writer.position(), position);
  }
  writer.finish();
  ASSERT_EQ(bytes.size(), (position + 7) / 8);
  BitReader reader(bytes);
  for (const auto& [value, width] : fields) ASSERT_EQ(reader.get(width), value);
  EXPECT_FALSE(reader.past_end());
  EXPECT_EQ(reader.get(64), 0U);
  EXPECT_TRUE(reader.past_end());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(BitStreamTest, GammaAndUnary) {
  std::vector<std::byte> bytes;
  BitWriter writer(bytes);
  std::vector<std::uint64_t> values;
  for (unsigned n = 0; n <= 33; ++n) {
    for (const std::uint64_t v : {std::uint64_t{1} << n, (std::uint64_t{2} << n) - 1}) {
      values.push_back(v);
      const std::uint64_t before = writer.position();
      writer.put_gamma(v);
      EXPECT_EQ(writer.position() - before, gamma_bits(v));
    }
  }
  writer.finish();
  BitReader reader(bytes);
  for (const std::uint64_t v : values) ASSERT_EQ(reader.get_gamma(), v);

  BitWriter unary(bytes);
  for (const std::uint64_t zeros : {0U, 1U, 55U, 56U, 57U, 300U}) {
    BitCursor cursor = unary.reserve(zeros + 1);
    cursor.put_unary(zeros);
    unary.commit(cursor);
  }
  unary.finish();
  BitReader back(bytes);
  for (const std::uint64_t zeros : {0U, 1U, 55U, 56U, 57U}) EXPECT_EQ(back.get_unary(1000), zeros);
  EXPECT_EQ(back.get_unary(299), BitReader::kNoOne);
  const std::vector<std::byte> zeros(100);
  BitReader none(zeros);
  EXPECT_EQ(none.get_unary(1 << 30), BitReader::kNoOne);
  BitReader endless(zeros);
  EXPECT_EQ(endless.get_gamma(), 0U);
}

}  // namespace
}  // namespace fl::codec
