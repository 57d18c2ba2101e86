#include "compressors/codec/positions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "fl_core/config/error.hpp"

namespace fl::codec {
namespace {

Segment segment(std::size_t begin, std::size_t end) { return Segment{.begin = begin, .end = end, .rows = end - begin, .cols = 1}; }

std::vector<std::uint64_t> gaps_of(const std::vector<std::uint32_t>& index, const Segment& s) {
  std::vector<std::uint64_t> gaps;
  std::uint64_t next = s.begin;
  for (const std::uint32_t j : index) {
    gaps.push_back(j - next);
    next = std::uint64_t{j} + 1;
  }
  return gaps;
}

// Rice's code words with the best of all parameters, and the parameter itself.
std::uint64_t rice_by_definition(std::span<const std::uint64_t> gaps, std::uint8_t& parameter) {
  std::uint64_t least = ~std::uint64_t{0};
  for (unsigned k = 0; k < 32; ++k) {
    std::uint64_t sum = 5;
    for (const std::uint64_t g : gaps) sum += (g >> k) + 1 + k;
    if (sum < least) {
      least = sum;
      parameter = static_cast<std::uint8_t>(k);
    }
  }
  return least;
}

std::uint64_t golomb_by_definition(std::span<const std::uint64_t> gaps, std::uint64_t divisor) {
  std::uint64_t b = 0;
  while ((std::uint64_t{1} << b) < divisor) ++b;
  std::uint64_t sum = gamma_bits(divisor);
  for (const std::uint64_t g : gaps) sum += g / divisor + 1 + (g % divisor < (std::uint64_t{1} << b) - divisor ? b - 1 : b);
  return sum;
}

// The costs by their definitions, every Rice parameter tried.
PositionCosts by_definition(const std::vector<std::uint32_t>& index, const Segment& s) {
  PositionCosts costs;
  const std::vector<std::uint64_t> gaps = gaps_of(index, s);
  costs.of(PositionCode::rice) = rice_by_definition(gaps, costs.rice_parameter);
  costs.of(PositionCode::gamma) = 0;
  for (const std::uint64_t g : gaps) costs.of(PositionCode::gamma) += 2 * static_cast<std::uint64_t>(std::bit_width(g + 1)) - 1;
  costs.of(PositionCode::bitmap) = s.size();
  std::uint64_t width = 0;
  while ((std::uint64_t{1} << width) < s.size()) ++width;
  costs.of(PositionCode::fixed) = index.size() * width;
  if (gaps.size() >= 256) {
    costs.of(PositionCode::blocks) = 0;
    std::uint8_t parameter = 0;
    for (std::size_t from = 0; from < gaps.size(); from += 128) {
      costs.of(PositionCode::blocks) +=
          rice_by_definition(std::span(gaps).subspan(from, std::min<std::size_t>(128, gaps.size() - from)), parameter);
    }
  }
  const auto sum = static_cast<double>(std::accumulate(gaps.begin(), gaps.end(), std::uint64_t{0}));
  if (gaps.size() < 64 || sum == 0) return costs;
  const double q = sum / (sum + static_cast<double>(gaps.size()));
  const auto divisor = static_cast<std::uint32_t>(std::ceil(-std::log1p(q) / std::log(q)));
  if (std::has_single_bit(divisor)) return costs;
  costs.golomb_divisor = divisor;
  costs.of(PositionCode::golomb) = golomb_by_definition(gaps, divisor);
  return costs;
}

std::vector<std::uint32_t> complement(const std::vector<std::uint32_t>& index, const Segment& s) {
  std::vector<std::uint32_t> others;
  std::size_t i = 0;
  for (std::size_t j = s.begin; j < s.end; ++j) {
    if (i < index.size() && index[i] == j) {
      ++i;
    } else {
      others.push_back(static_cast<std::uint32_t>(j));
    }
  }
  return others;
}

// The list that is described.
std::vector<std::uint32_t> shorter(const std::vector<std::uint32_t>& index, const Segment& s) {
  return 2 * index.size() > s.size() ? complement(index, s) : index;
}

constexpr unsigned kCodeBits[] = {1, 3, 3, 3, 4, 4};

void expect_exact(const std::vector<std::uint32_t>& index, const Segment& s) {
  const std::vector<std::uint32_t> listed = shorter(index, s);
  const PositionCosts costs = position_costs(listed, s), expected = by_definition(listed, s);
  std::uint64_t least = PositionCosts::kNotTried;
  for (int c = 0; c < kNumPositionCodes; ++c) {
    EXPECT_EQ(costs.bits[c], expected.bits[c]) << "code " << c;
    if (expected.bits[c] != PositionCosts::kNotTried) least = std::min(least, expected.bits[c] + kCodeBits[c]);
  }
  EXPECT_EQ(costs.rice_parameter, expected.rice_parameter);
  EXPECT_EQ(costs.golomb_divisor, expected.golomb_divisor);
  EXPECT_EQ(plan_positions(index, s).bits, gamma_bits(index.size() + 1) + least);
}

// Every code, forced, brings the positions back in exactly the bits that it was said to take.
void expect_round_trip(const std::vector<std::uint32_t>& index, const Segment& s) {
  const PositionCosts costs = position_costs(shorter(index, s), s);
  for (std::uint8_t code = 0; code < kNumPositionCodes; ++code) {
    if (costs.bits[code] > (std::uint64_t{1} << 24)) continue;
    const PositionPlan plan{.code = static_cast<PositionCode>(code),
                            .rice_parameter = costs.rice_parameter,
                            .golomb_divisor = costs.golomb_divisor,
                            .bits = gamma_bits(index.size() + 1) + kCodeBits[code] + costs.bits[code]};
    std::vector<std::byte> bytes;
    BitWriter writer(bytes);
    writer.put(5, 3);  // off the byte grid
    write_positions(writer, plan, index, s);
    EXPECT_EQ(writer.position(), plan.bits + 3) << "code " << int{code};
    writer.finish();
    BitReader reader(bytes);
    EXPECT_EQ(reader.get(3), 5U);
    std::size_t count = 0;
    ASSERT_EQ(read_count(reader, s, count), "");
    ASSERT_EQ(count, index.size());
    std::vector<std::uint32_t> back(count);
    ASSERT_EQ(read_positions(reader, s, count, back.data()), "") << "code " << int{code};
    EXPECT_EQ(back, index) << "code " << int{code};
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
    EXPECT_LE(plan_positions(std::vector<std::uint32_t>{j}, segment(0, 500)).bits, 3U + 3 + 9);
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
  constexpr unsigned kRice = 0, kGamma = 1, kBitmap = 3, kFixed = 5, kGolomb = 7, kBlocks = 15;
  refuse([](BitWriter& w) { w.put(kRice | 2 << 1, 6), w.put(std::uint64_t{1} << 30, 31), w.put(0, 30); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kRice, 6), w.put(0, 64), w.put(0, 64), w.put(0, 64); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kRice, 6), w.put(0, 20); }, 2, "ends inside");
  refuse([](BitWriter& w) { w.put(kGamma, 3), w.put_gamma(60), w.put_gamma(60), w.put(0, 60); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kGamma, 3), w.put(0, 64); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kBitmap, 3), w.put(7, 60), w.put(0, 40); }, 2, "more positions");
  refuse([](BitWriter& w) { w.put(kBitmap, 3), w.put(7, 60), w.put(0, 40); }, 4, "holds 3 positions");
  refuse([](BitWriter& w) { w.put(kBitmap, 3), w.put(7, 60); }, 3, "ends inside");
  refuse([](BitWriter& w) { w.put(kFixed, 3), w.put(9, 7), w.put(9, 7); }, 2, "not ascending");
  refuse([](BitWriter& w) { w.put(kFixed, 3), w.put(9, 7), w.put(101, 7); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kFixed, 3), w.put(9, 7); }, 3, "ends inside");
  for (const std::uint64_t divisor : {1, 2, 4, 64}) refuse([=](BitWriter& w) { w.put(kGolomb, 4), w.put_gamma(divisor); }, 2, "divisor");
  refuse([](BitWriter& w) { w.put(kGolomb, 4), w.put(0, 60); }, 2, "divisor 0");
  refuse([](BitWriter& w) { w.put(kGolomb, 4), w.put_gamma(40), w.put(1 << 3, 4), w.put(0, 60); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kGolomb, 4), w.put_gamma(40), w.put(1, 1); }, 2, "ends inside");
  refuse([](BitWriter& w) { w.put(kBlocks, 4), w.put(31, 5), w.put(0, 60); }, 2, "behind the end");
  refuse([](BitWriter& w) { w.put(kBlocks, 4), w.put(0, 5), w.put(0, 10); }, 2, "ends inside");
  // If 98 positions are sent, the other two are encoded.
  refuse([](BitWriter& w) { w.put(kFixed, 3), w.put(9, 7), w.put(101, 7); }, 98, "behind the end");
}

// Uniform supports: never below what information asks for, and within 1.5% of it.
TEST(PositionsTest, UniformSupportsAreCloseToTheBound) {
  for (const std::size_t size : {100'000U, 1'000'000U, 10'000'000U}) {
    for (const double share : {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2}) {
      const Segment s = segment(0, size);
      const auto index = bernoulli(s, share, size + static_cast<std::uint64_t>(1e4 * share));
      const double bound = log2_binomial(size, index.size());  // of positions whose number is known
      const auto bits = static_cast<double>(plan_positions(index, s).bits - gamma_bits(index.size() + 1));
      EXPECT_GT(bits, bound) << size << " " << share;
      // Only from some hundred positions on do they pay for the code's name and parameter.
      EXPECT_LT(bits, 1.015 * bound + (index.size() < 500 ? 8 : 0)) << size << " " << share;
    }
  }
}

// Nearly everything kept costs what nearly nothing costs, but for the count.
TEST(PositionsTest, ComplementsAreDescribed) {
  const Segment s = segment(3, 50'003);
  for (const double share : {0.001, 0.05, 0.3}) {
    const auto few = bernoulli(s, share, 5), many = complement(few, s);
    EXPECT_EQ(plan_positions(many, s).bits - gamma_bits(many.size() + 1), plan_positions(few, s).bits - gamma_bits(few.size() + 1));
    expect_round_trip(many, s);
  }
}

// A layer with many kept entries among layers with few: blocks take the bound of the parts, one parameter for all does not.
TEST(PositionsTest, ClusteredSupportsAreWrittenInBlocks) {
  const Segment sparse = segment(0, 900'000), dense = segment(900'000, 1'000'000), s = segment(0, 1'000'000);
  auto index = bernoulli(sparse, 0.002, 1);
  const auto more = bernoulli(dense, 0.2, 2);
  const double bound = log2_binomial(sparse.size(), index.size()) + log2_binomial(dense.size(), more.size());
  index.insert(index.end(), more.begin(), more.end());
  const PositionPlan plan = plan_positions(index, s);
  EXPECT_EQ(plan.code, PositionCode::blocks);
  EXPECT_LT(static_cast<double>(plan.bits), 1.04 * bound);
  EXPECT_GT(static_cast<double>(position_costs(index, s).of(PositionCode::rice)), 1.3 * bound);
  expect_round_trip(index, s);
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
    const double per_parameter = static_cast<double>(costs.of(PositionCode::rice) + index.size()) / static_cast<double>(s.size());
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
