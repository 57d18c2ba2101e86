// Throughput and size of the codes for positions: N = 10M parameters, a share of them kept uniformly at random, one core.
// With it the cost of planning, whole dense messages, levels in an entropy code, and the server's sum.
// Columns: million positions per second, bits per position, and the entropy limit log2 C(N,k) / k beside it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/codec/positions.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace {

using fl::Payload;
using fl::Scope;
using fl::Segment;
namespace codec = fl::codec;

constexpr std::size_t kParameters = 10'000'000;
constexpr std::array<double, 3> kShares = {0.001, 0.01, 0.1};

const std::vector<std::uint32_t>& kept(std::size_t which) {
  static std::array<std::vector<std::uint32_t>, kShares.size()> cache;
  std::vector<std::uint32_t>& index = cache[which];
  if (index.empty()) {
    std::mt19937_64 random(7 + which);
    std::bernoulli_distribution keep(kShares[which]);
    for (std::uint32_t j = 0; j < kParameters; ++j) {
      if (keep(random)) index.push_back(j);
    }
  }
  return index;
}

Segment whole() { return Segment{.begin = 0, .end = kParameters, .rows = kParameters, .cols = 1}; }

codec::PositionPlan plan_with(codec::PositionCode code, const std::vector<std::uint32_t>& index) {
  const codec::PositionCosts costs = codec::position_costs(index, whole());
  return {.code = code,
          .rice_parameter = costs.rice_parameter,
          .golomb_divisor = costs.golomb_divisor,
          .bits = codec::gamma_bits(index.size() + 1) + codec::code_bits(code) + costs.of(code)};
}

void report(benchmark::State& state, const std::vector<std::uint32_t>& index, std::uint64_t bits) {
  const auto count = static_cast<double>(index.size());
  state.counters["Mint/s"] = benchmark::Counter(count / 1e6, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bits/index"] = static_cast<double>(bits) / count;
  state.counters["entropy/index"] = codec::log2_binomial(kParameters, index.size()) / count;
}

void encode_positions(benchmark::State& state, codec::PositionCode code) {
  const auto& index = kept(static_cast<std::size_t>(state.range(0)));
  const codec::PositionPlan plan = plan_with(code, index);
  std::vector<std::byte> bytes;
  for (auto _ : state) {
    codec::BitWriter writer(bytes);
    codec::write_positions(writer, plan, index, whole());
    writer.finish();
    benchmark::DoNotOptimize(bytes.data());
    benchmark::ClobberMemory();
  }
  report(state, index, plan.bits);
}

void decode_positions(benchmark::State& state, codec::PositionCode code) {
  const auto& index = kept(static_cast<std::size_t>(state.range(0)));
  const codec::PositionPlan plan = plan_with(code, index);
  std::vector<std::byte> bytes;
  codec::BitWriter writer(bytes);
  codec::write_positions(writer, plan, index, whole());
  writer.finish();
  std::vector<std::uint32_t> decoded(index.size());
  for (auto _ : state) {
    codec::BitReader reader(bytes);
    std::size_t count = 0;
    std::string wrong = codec::read_count(reader, whole(), count);
    if (wrong.empty()) wrong = codec::read_positions(reader, whole(), count, decoded.data());
    if (!wrong.empty()) state.SkipWithError(wrong.c_str());
    benchmark::ClobberMemory();
  }
  if (decoded != index) state.SkipWithError("decoded positions differ");
  report(state, index, plan.bits);
}

void plan_cost(benchmark::State& state) {
  const auto& all = kept(1);
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(state.range(0)), all.size());
  const std::size_t size = count == 1 ? 500 : kParameters;
  const Segment segment{.begin = 0, .end = size, .rows = size, .cols = 1};
  for (auto _ : state) benchmark::DoNotOptimize(codec::plan_positions({all.data(), count}, segment));
  state.counters["s/index"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

Scope model_scope() { return Scope{.kind = fl::ScopeKind::model, .segments = {whole()}, .excluded = {}, .P = kParameters}; }

// A whole message: dense values or levels of the given width.
Payload<float> dense_message(unsigned level_bits) {
  Payload<float> message;
  message.clear(kParameters);
  message.num_sent = kParameters;
  if (level_bits == 0) {
    message.value.resize_discard(kParameters);
    return message;
  }
  message.values = fl::WireValue::levels;
  message.level_format = {.min_level = level_bits == 8 ? -128 : 0, .bits = static_cast<std::uint8_t>(level_bits), .has_scale = false};
  message.level_bytes.resize_discard(kParameters);
  message.level_width = fl::LevelWidth::w8;
  std::mt19937_64 random(5);  // uniform levels, which no code shortens
  for (std::size_t i = 0; i < kParameters; ++i) {
    message.levels<std::int8_t>()[i] = static_cast<std::int8_t>(random() & ((1U << level_bits) - 1));
  }
  return message;
}

void encode_dense(benchmark::State& state) {
  const Payload<float> message = dense_message(static_cast<unsigned>(state.range(0)));
  const Scope scope = model_scope();
  const std::array<codec::Channel<float>, 1> channels = {codec::Channel<float>{&message, &scope}};
  std::vector<std::byte> bytes;
  for (auto _ : state) codec::encode<float>(channels, bytes);
  state.counters["Mvalue/s"] = benchmark::Counter(kParameters / 1e6, benchmark::Counter::kIsIterationInvariantRate);
}

void decode_dense(benchmark::State& state) {
  const Payload<float> message = dense_message(static_cast<unsigned>(state.range(0)));
  const Scope scope = model_scope();
  const std::array<codec::Channel<float>, 1> channels = {codec::Channel<float>{&message, &scope}};
  std::vector<std::byte> bytes;
  codec::encode<float>(channels, bytes);
  Payload<float> decoded;
  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {kParameters};
  const std::array<Payload<float>*, 1> payloads = {&decoded};
  for (auto _ : state) {
    if (!codec::decode<float>(bytes, scopes, lengths, payloads)) state.SkipWithError("refused");
  }
  state.counters["Mvalue/s"] = benchmark::Counter(kParameters / 1e6, benchmark::Counter::kIsIterationInvariantRate);
}

// Ternary levels, 5% of them not zero, or eight bits of a normal distribution: worth an entropy code. Columns: million levels per
// second, bits per level and their empirical entropy.
Payload<float> coded_message(unsigned level_bits) {
  Payload<float> message = dense_message(level_bits);
  message.level_format.min_level = level_bits == 2 ? -1 : -127;
  message.level_format.bits = static_cast<std::uint8_t>(level_bits);
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0, level_bits == 2 ? 0.255F : 6.0F);
  for (std::size_t i = 0; i < kParameters; ++i) {
    message.levels<std::int8_t>()[i] =
        static_cast<std::int8_t>(std::clamp(std::round(normal(random)), level_bits == 2 ? -1.0F : -127.0F, 127.0F));
  }
  return message;
}

enum class CodedStep { length, encode, decode };

void coded_levels(benchmark::State& state, CodedStep step) {
  const Payload<float> message = coded_message(static_cast<unsigned>(state.range(0)));
  const Scope scope = model_scope();
  const std::array<codec::Channel<float>, 1> channels = {codec::Channel<float>{&message, &scope}};
  const std::array<const Scope*, 1> scopes = {&scope};
  const std::array<std::size_t, 1> lengths = {kParameters};
  Payload<float> decoded;
  const std::array<Payload<float>*, 1> payloads = {&decoded};
  std::vector<std::byte> bytes;
  codec::encode<float>(channels, bytes);
  for (auto _ : state) {
    if (step == CodedStep::length) benchmark::DoNotOptimize(codec::encoded_bits<float>(channels));
    if (step == CodedStep::encode) codec::encode<float>(channels, bytes);
    if (step == CodedStep::decode && !codec::decode<float>(bytes, scopes, lengths, payloads)) state.SkipWithError("refused");
  }
  state.counters["Mlevel/s"] = benchmark::Counter(kParameters / 1e6, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bits/level"] = 8 * static_cast<double>(bytes.size()) / kParameters;
  state.counters["entropy/level"] = codec::entropy_bits(message, scope) / kParameters;
}

// Times the server's work on each message: sum += weight * c, for dense values (0) or levels of 1, 4 or 8 bits.
void accumulate_dense(benchmark::State& state) {
  const Payload<float> message = dense_message(static_cast<unsigned>(state.range(0)));
  const Scope scope = model_scope();
  std::vector<double> sum(kParameters);
  for (auto _ : state) {
    fl::accumulate(message, scope, 0.1, 0, kParameters, sum.data());
    benchmark::ClobberMemory();
  }
  state.counters["Mvalue/s"] = benchmark::Counter(kParameters / 1e6, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

#define FL_POSITION_BENCH(code)                                                                                          \
  BENCHMARK_CAPTURE(encode_positions, code, codec::PositionCode::code)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond); \
  BENCHMARK_CAPTURE(decode_positions, code, codec::PositionCode::code)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond)
FL_POSITION_BENCH(rice);
FL_POSITION_BENCH(gamma);
FL_POSITION_BENCH(bitmap);
FL_POSITION_BENCH(fixed);
FL_POSITION_BENCH(golomb);
FL_POSITION_BENCH(blocks);
BENCHMARK(plan_cost)->Arg(1)->Arg(10)->Arg(100)->Arg(10'000)->Arg(100'000);
BENCHMARK(encode_dense)->Arg(0)->Arg(1)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_dense)->Arg(0)->Arg(1)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(coded_levels, length, CodedStep::length)->Arg(2)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(coded_levels, encode, CodedStep::encode)->Arg(2)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(coded_levels, decode, CodedStep::decode)->Arg(2)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK(accumulate_dense)->Arg(0)->Arg(1)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
