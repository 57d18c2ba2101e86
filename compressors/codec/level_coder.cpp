#include "compressors/codec/level_coder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>

#include "compressors/codec/level_tokens.hpp"
#include "fl_core/config/error.hpp"

namespace fl::codec {

namespace {

constexpr unsigned kLengthUnitBits = 24;  // lengths are added up in units of 2^-24 bit

// Counts levels per token. Neighbours go to different tables, because increments for equal levels in a row would wait for each other.
template <std::size_t kTables, class L>
void count_direct(const L* level, std::size_t n, const LevelFormat& format, std::vector<std::uint64_t>& count) {
  const std::size_t size = std::bit_ceil(count.size());
  const auto min = static_cast<std::uint32_t>(format.min_level), mask = static_cast<std::uint32_t>(size - 1);
  static thread_local std::vector<std::uint32_t> table;
  table.assign(kTables * size, 0);
  std::uint32_t worst = 0;
  const auto add = [&](std::size_t i, std::size_t t) {
    const std::uint32_t code = static_cast<std::uint32_t>(static_cast<std::int32_t>(level[i])) - min;
    worst = std::max(worst, code);
    ++table[t * size + (code & mask)];
  };
  std::size_t i = 0;
  for (; i + kTables <= n; i += kTables) {
#pragma GCC unroll 4
    for (std::size_t t = 0; t < kTables; ++t) add(i + t, t);
  }
  for (; i < n; ++i) add(i, 0);
  if (worst >= count.size()) throw_level_outside(format);
  for (std::size_t c = 0; c < count.size(); ++c) {
    for (std::size_t t = 0; t < kTables; ++t) count[c] += table[t * size + c];
  }
}

template <class L>
void count_wide(const L* level, std::size_t n, const LevelFormat& format, std::vector<std::uint64_t>& count) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t l = level[i];  // signed also if a level is a byte. NOLINT(bugprone-signed-char-misuse)
    if (l < format.min_level || l > max_level(format)) throw_level_outside(format);
    ++count[wide_token(l, format).token];
  }
}

}  // namespace

template <class T>
void count_levels(const Payload<T>& payload, std::vector<std::uint64_t>& count) {
  const LevelFormat& format = payload.level_format;
  const std::size_t n = payload.num_sent;
  count.assign(static_cast<std::size_t>(num_levels(format)), 0);
  with_levels(payload, [&](const auto* level) {
    constexpr std::size_t kLevelsPerEntry = 8;  // from here on more tables pay for clearing them
    n >= kLevelsPerEntry* count.size() ? count_direct<4>(level, n, format, count) : count_direct<1>(level, n, format, count);
  });
}

namespace {

// ---- the model and its length ----

// Computes frequencies in proportion to the counts, at least 1, with sum 2^r. Returns false if there are too many tokens.
bool scale_counts(std::span<const std::uint64_t> count, std::uint64_t n, unsigned precision, std::vector<std::uint32_t>& frequency) {
  const std::int64_t total = std::int64_t{1} << precision;
  if (count.size() > static_cast<std::size_t>(total) / 2) return false;
  frequency.resize(count.size());
  std::int64_t left = total;
  for (std::size_t i = 0; i < count.size(); ++i) {
    frequency[i] = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, ((count[i] << precision) + n / 2) / n));
    left -= frequency[i];
  }
  // The remainder of rounding is added to the largest frequency; an excess is taken from the largest, bit by bit.
  while (left != 0) {
    const auto largest = std::max_element(frequency.begin(), frequency.end());
    const std::int64_t change = left > 0 ? left : -std::min<std::int64_t>(-left, (*largest + 7) / 8);
    *largest = static_cast<std::uint32_t>(*largest + change);
    left -= change;
  }
  return true;
}

std::uint64_t model_bits(const LevelModel& model) {
  std::uint64_t bits = kPrecisionBits + gamma_bits(model.token.size());
  std::uint32_t next = 0;
  for (const std::uint16_t token : model.token) {
    bits += gamma_bits(token - next + 1);
    next = std::uint32_t{token} + 1;
  }
  int before = static_cast<int>(model.precision);
  for (std::size_t i = 0; i + 1 < model.frequency.size(); ++i) {
    const int width = std::bit_width(model.frequency[i]);
    bits += gamma_bits(folded(width - before)) + static_cast<std::uint64_t>(width) - 1;
    before = width;
  }
  return bits;
}

// Returns log2(M/f) in units, rounded up.
std::uint64_t token_cost(std::uint32_t frequency, unsigned precision) {
  if (std::has_single_bit(frequency))
    return std::uint64_t{precision + 1 - static_cast<unsigned>(std::bit_width(frequency))} << kLengthUnitBits;
  return static_cast<std::uint64_t>(std::ceil((precision - std::log2(static_cast<double>(frequency))) * (1U << kLengthUnitBits))) + 1;
}

std::uint64_t words_for(std::span<const std::uint64_t> count, std::uint64_t n, const LevelModel& model) {
  constexpr std::uint64_t kLevelsPerWord = 32 * kLevelsPerBit;
  const unsigned r = model.precision;
  // Each step rounds the state up by 2^(r-31) log2 e < 1.5 * 2^(r-31) bits per level; a single token does not change it.
  std::uint64_t units = count.size() > 1 ? n * ((std::uint64_t{3} << r) >> (32 - kLengthUnitBits)) : 0;
  for (std::size_t i = 0; i < count.size(); ++i) units += count[i] * token_cost(model.frequency[i], r);
  return std::max((units >> (kLengthUnitBits + 5)) + 2, (n + kLevelsPerWord - 1) / kLevelsPerWord);
}

// Finds the model with the shortest result among all precisions; `extra` bits are needed in any case.
void find_model(std::span<const std::uint64_t> count, std::uint64_t n, std::uint64_t extra, LevelPlan& plan) {
  LevelModel trial;
  trial.token = plan.model.token;
  std::uint64_t least = ~std::uint64_t{0};
  for (trial.precision = kLeastPrecision; trial.precision <= kMostPrecision; ++trial.precision) {
    if (!scale_counts(count, n, trial.precision, trial.frequency)) continue;
    const std::uint64_t words = words_for(count, n, trial);
    const std::uint64_t bits = model_bits(trial) + gamma_bits(words) + 32 * words + extra;
    if (bits >= least) continue;
    least = bits;
    plan.model = trial;
    plan.words = words;
  }
  plan.bits = least;
}

}  // namespace

template <class T>
LevelPlan plan_levels(const Payload<T>& payload, std::span<const std::uint32_t> counted) {
  constexpr std::uint64_t kLeastCoded = 64 + 3 + kPrecisionBits + 1 + 1;  // the state, W, r and one token
  const LevelFormat& format = payload.level_format;
  const std::size_t n = payload.num_sent;
  LevelPlan plan;
  plan.bits = n * std::uint64_t{format.bits};
  if (plan.bits <= kLeastCoded) return plan;
  if (const std::string wrong = check_format(format); !wrong.empty()) throw Error("a compressor's level format cannot be sent: " + wrong);

  static thread_local std::vector<std::uint64_t> count, present;
  if (!counted.empty()) {
    count.assign(counted.begin(), counted.end());
  } else if (is_direct(format)) {
    count_levels(payload, count);
  } else {
    count.assign(num_tokens(format), 0);
    with_levels(payload, [&](const auto* level) { count_wide(level, n, format, count); });
  }
  LevelPlan coded;
  coded.coded = true;
  std::uint64_t extra = 0;
  present.clear();
  for (std::size_t token = 0; token < count.size(); ++token) {
    if (count[token] == 0) continue;
    coded.model.token.push_back(static_cast<std::uint16_t>(token));
    present.push_back(count[token]);
    if (!is_direct(format)) extra += count[token] * extra_bits_of(static_cast<std::uint32_t>(token));
  }
  find_model(present, n, extra, coded);
  return coded.bits < plan.bits ? coded : plan;
}

// ---- writing ----

namespace {

void write_model(BitWriter& writer, const LevelModel& model) {
  writer.put(model.precision - kLeastPrecision, kPrecisionBits);
  writer.put_gamma(model.token.size());
  std::uint32_t next = 0;
  for (const std::uint16_t token : model.token) {
    writer.put_gamma(token - next + 1);
    next = std::uint32_t{token} + 1;
  }
  int before = static_cast<int>(model.precision);
  for (std::size_t i = 0; i + 1 < model.frequency.size(); ++i) {
    const int width = std::bit_width(model.frequency[i]);
    writer.put_gamma(folded(width - before));
    writer.put(low_bits(model.frequency[i], static_cast<unsigned>(width) - 1), static_cast<unsigned>(width) - 1);
    before = width;
  }
}

struct Interval {
  std::uint32_t frequency = 0, below = 0;
};

// Returns the intervals by token.
std::vector<Interval> intervals_of(const LevelModel& model) {
  std::vector<Interval> intervals(std::size_t{model.token.back()} + 1);
  std::uint32_t below = 0;
  for (std::size_t i = 0; i < model.token.size(); ++i) {
    intervals[model.token[i]] = {.frequency = model.frequency[i], .below = below};
    below += model.frequency[i];
  }
  return intervals;
}

// Encodes from the last level to the first. words: overwritten, in the order of writing, that is from the last one that the decoder reads
template <class TokenOf>
std::uint64_t encode_state(std::size_t n, const LevelModel& model, TokenOf token_of, std::vector<std::uint32_t>& words) {
  const std::vector<Interval> intervals = intervals_of(model);
  const unsigned r = model.precision;
  std::uint64_t x = kLeastState;
  words.clear();
  for (std::size_t i = n; i-- > 0;) {
    const Interval& interval = intervals[token_of(i)];
    if (x >= ((kLeastState >> r) << 32) * interval.frequency) {
      words.push_back(static_cast<std::uint32_t>(x));
      x >>= 32;
    }
    x = (x / interval.frequency << r) + x % interval.frequency + interval.below;
  }
  return x;
}

template <class L>
std::uint64_t encode_levels(const L* level, std::size_t n, const LevelFormat& format, const LevelModel& model,
                            std::vector<std::uint32_t>& words) {
  const auto min = static_cast<std::uint32_t>(format.min_level);
  if (!is_direct(format))
    return encode_state(
        n, model, [&](std::size_t i) { return wide_token(level[i], format).token; }, words);
  return encode_state(
      n, model, [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(level[i])) - min; }, words);
}

template <class L>
void write_extra(BitWriter& writer, const L* level, std::size_t n, const LevelFormat& format) {
  BitCursor cursor = writer.reserve(n * std::uint64_t{32});
  for (std::size_t i = 0; i < n; ++i) {
    const Token token = wide_token(level[i], format);
    cursor.put(token.extra, token.extra_bits);
  }
  writer.commit(cursor);
}

}  // namespace

template <class T>
void write_coded_levels(BitWriter& writer, const LevelPlan& plan, const Payload<T>& payload) {
  const LevelFormat& format = payload.level_format;
  static thread_local std::vector<std::uint32_t> words;
  const std::uint64_t x =
      with_levels(payload, [&](const auto* level) { return encode_levels(level, payload.num_sent, format, plan.model, words); });
  if (words.size() + 2 > plan.words) throw Error("the code of levels is longer than was worked out, which is a mistake of the codec");

  write_model(writer, plan.model);
  writer.put_gamma(plan.words);
  BitCursor cursor = writer.reserve(32 * plan.words);
  cursor.put(low_bits(x, 32), 32);
  cursor.put(x >> 32, 32);
  for (std::size_t i = words.size(); i-- > 0;) cursor.put(words[i], 32);
  for (std::uint64_t i = words.size() + 2; i < plan.words; ++i) cursor.put(0, 32);
  writer.commit(cursor);
  if (!is_direct(format)) with_levels(payload, [&](const auto* level) { write_extra(writer, level, payload.num_sent, format); });
}

template void count_levels<float>(const Payload<float>&, std::vector<std::uint64_t>&);
template void count_levels<double>(const Payload<double>&, std::vector<std::uint64_t>&);
template LevelPlan plan_levels<float>(const Payload<float>&, std::span<const std::uint32_t>);
template LevelPlan plan_levels<double>(const Payload<double>&, std::span<const std::uint32_t>);
template void write_coded_levels<float>(BitWriter&, const LevelPlan&, const Payload<float>&);
template void write_coded_levels<double>(BitWriter&, const LevelPlan&, const Payload<double>&);

}  // namespace fl::codec
