// Operators on the GPU against the same operators on the CPU: the same message, state and memory, byte for byte, on sizes that end in the
// middle of everything, on zeros, ties, denormal numbers and infinities, for one to five clients. Where matrices are decomposed devices
// agree up to rounding. Without a GPU everything is skipped.
// With FL_CUDA_EMULATOR kernels run on the CPU, threads in ascending order and in descending order: one that forgot to wait shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "compressors/conversation.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/support/sanitized.hpp"
#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/block.hpp"
#endif

namespace fl {
namespace {

using test::Pattern;

#if defined(FL_CUDA_EMULATOR)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

using Settings = std::vector<std::pair<std::string, Value>>;

// An operator with some of its options.
struct OperatorCase {
  std::string label, name;
  Settings settings;
  // Many small kernels, one segment after another: emulated on short vectors alone.
  [[nodiscard]] bool is_slow() const { return name == "accordion" || name == "lgreco" || name == "induced"; }
};
void PrintTo(const OperatorCase& c, std::ostream* out) { *out << c.label; }

// { kind = name, key = value, ... }
Value part(const char* name, const Settings& settings = {}) {
  Value value;
  Value::Table table = {{"kind", Value{std::string(name)}}};
  table.insert(table.end(), settings.begin(), settings.end());
  value.data = std::move(table);
  return value;
}
Value list_of(Value::List values) {
  Value value;
  value.data = std::move(values);
  return value;
}

// The results of one device for a block of clients, copied to the host.
template <class T>
struct Outcome {
  std::vector<Payload<T>> messages;  // [rounds * phases * K]
  std::vector<T> state;              // [K,P]
  std::vector<T> memory;             // [K,L]
};

// One block of clients: K x P inputs, p = 1 * e + 0.5 * g, the state written over e. With more terms, those of other clients' g as well.
template <class T>
struct ParityBlock {
  std::uint32_t K;
  std::size_t P;
  std::vector<T> e, g;  // [K,P]
  std::vector<std::uint32_t> clients, rows;
  int num_terms = 2;
};

template <class T>
ParityBlock<T> make_block(Pattern pattern, std::uint32_t K, std::size_t P) {
  ParityBlock<T> block{K, P, {}, {}, {}, {}, 2};
  for (std::uint32_t k = 0; k < K; ++k) {
    const RandomStream stream(7, k, 0);
    for (std::size_t j = 0; j < P; ++j) {
      block.e.push_back(test::number<T>(pattern, stream.bits(2 * j), j));
      block.g.push_back(test::number<T>(pattern, stream.bits(2 * j + 1), j));
    }
    block.clients.push_back(100 + 3 * k);
    block.rows.push_back(K - 1 - k);
  }
  return block;
}

template <class U>
Buffer<U> place(const std::vector<U>& values, Device device) {
  Buffer<U> buffer(values.size(), device);
  copy_bytes(buffer.data(), device, values.data(), Device::cpu, values.size() * sizeof(U));
  return buffer;
}

// Numbers of a device, on the host.
template <class U>
std::vector<U> fetch(const Buffer<U>& buffer) {
  std::vector<U> values(buffer.size());
  if (!values.empty()) copy_bytes(values.data(), Device::cpu, buffer.data(), buffer.device(), values.size() * sizeof(U));
  return values;
}

// One round, or two where something is remembered; the mean of a phase is the first client's message.
template <class T>
Outcome<T> compress_on(Device device, const OperatorCase& tested, const Scope& wanted, StateRule rule, const ParityBlock<T>& block) {
  const auto op =
      make_part<Compressor<T>>("compressor", tested.name, test::compressor_options(tested.name, tested.settings), device, kPrecisionOf<T>);
  const Scope scope = op->adapt(wanted);
  op->check(scope);
  Workspace workspace(device);
  Exec exec;
  exec.device = device;
  exec.workspace = &workspace;
  Buffer<T> e = place(block.e, device), g = place(block.g, device);
  const Buffer<std::uint32_t> rows = place(block.rows, device);
  Affine<T> input;
  input.add(T(1), BatchView<const T>{e.data(), rows.data(), block.K, block.P, block.P});
  if (block.num_terms > 1) input.add(T(0.5), BatchView<const T>{g.data(), nullptr, block.K, block.P, block.P});
  while (input.num_terms < block.num_terms)
    input.add(T(-0.3) * T(input.num_terms), BatchView<const T>{g.data(), rows.data(), block.K, block.P, block.P});
  const std::size_t L = op->client_state_size(scope);
  Buffer<T> before(block.K * L, device), after(block.K * L, device);
  std::vector<T> estimate(block.P);
  Conversation<T> conversation(*op, scope, 42);

  Outcome<T> outcome;
  std::vector<Payload<T>> messages(block.K);
  std::vector<Payload<T>*> pointers;
  for (Payload<T>& message : messages) pointers.push_back(&message);
  for (std::uint32_t round = 3; round < (L > 0 ? 5u : 4u); ++round) {
    for (conversation.open(round); !conversation.is_over();) {
      conversation.send(exec,
                        {.clients = block.clients,
                         .input = input,
                         .state = {rule, {e.data(), rows.data(), block.K, block.P, block.P}},
                         .remembered = {before.data(), rows.data(), block.K, L, L},
                         .remember = {after.data(), rows.data(), block.K, L, L}},
                        pointers);
      for (const Payload<T>& message : messages) cuda::copy_payload(message, outcome.messages.emplace_back(), nullptr);
      const Payload<T>& first = *(outcome.messages.end() - block.K);
      std::vector<T> mean(first.length);
      if (conversation.num_phases() > 1) std::copy_n(first.value.data(), first.num_sent, mean.begin());
      conversation.receive(mean, estimate);
    }
    before.swap(after);
  }
  outcome.state = fetch(e);
  outcome.memory = fetch(before);
  return outcome;
}

// Two NaN are the same whatever their payload, which processors choose differently.
template <class U>
bool same_bytes(const U* a, const U* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<U>)
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const void *of_a = a + i, *of_b = b + i;
    if (std::memcmp(of_a, of_b, sizeof(U)) != 0) return false;
  }
  return true;
}
template <class U>
bool same_bytes(const Buffer<U>& a, const Buffer<U>& b) {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

template <class T>
void expect_same(const Payload<T>& a, const Payload<T>& b) {
  ASSERT_EQ(a.num_sent, b.num_sent);
  EXPECT_EQ(a.length, b.length);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.level_width, b.level_width);
  EXPECT_TRUE(same_bytes(a.counts, b.counts)) << "counts";
  EXPECT_TRUE(same_bytes(a.index, b.index)) << "positions";
  EXPECT_TRUE(same_bytes(a.value, b.value)) << "values";
  EXPECT_TRUE(same_bytes(a.level_bytes, b.level_bytes)) << "levels";
  EXPECT_TRUE(same_bytes(a.scale, b.scale)) << "scales";
  EXPECT_TRUE(same_bytes(a.excluded, b.excluded)) << "excluded values";
  ASSERT_EQ(a.rest == nullptr, b.rest == nullptr);
  if (a.rest != nullptr) expect_same(*a.rest, *b.rest);
  ASSERT_EQ(&a.on_wire() == &a, &b.on_wire() == &b);
  if (&a.on_wire() != &a) expect_same(a.on_wire(), b.on_wire());
}

template <class T>
void expect_same(const Outcome<T>& cpu, const Outcome<T>& gpu) {
  ASSERT_EQ(cpu.messages.size(), gpu.messages.size());
  for (std::size_t k = 0; k < cpu.messages.size(); ++k) {
    SCOPED_TRACE(testing::Message() << "message " << k);
    expect_same(cpu.messages[k], gpu.messages[k]);
  }
  EXPECT_TRUE(same_bytes(cpu.state.data(), gpu.state.data(), cpu.state.size())) << "state";
  ASSERT_EQ(cpu.memory.size(), gpu.memory.size());
  EXPECT_TRUE(same_bytes(cpu.memory.data(), gpu.memory.data(), cpu.memory.size())) << "memory";
}

// A model of P parameters with two layers, in the scopes that an operator may be asked for.
std::vector<Scope> scopes_of(std::size_t P) {
  LayerTable table;
  const std::size_t head = P > 1 ? P / 3 + 1 : P;
  table.layers.push_back({"weight", 0, head, 1});
  if (head < P) table.layers.push_back({"bias", head, P - head, 1});
  std::vector<Scope> scopes = {make_scope(table, ScopeKind::model, 0, {}), make_scope(table, ScopeKind::tensor, 0, {}),
                               make_scope(table, ScopeKind::bucket, 512, {})};
  if (head < P) scopes.push_back(make_scope(table, ScopeKind::tensor, 0, {"bias"}));
  return scopes;
}

class GpuParity : public testing::TestWithParam<OperatorCase> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
  template <class T>
  void compare(Pattern pattern, std::uint32_t K, std::size_t P) {
    const ParityBlock<T> block = make_block<T>(pattern, K, P);
    for (const Scope& scope : scopes_of(P))
      for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
        if (rule == StateRule::zero_where_sent && GetParam().name == "stc") continue;
        SCOPED_TRACE(testing::Message() << GetParam().label << ", pattern " << static_cast<int>(pattern) << ", K = " << K << ", P = " << P
                                        << ", segments " << scope.segments.size() << ", rule " << static_cast<int>(rule));
        if (kEmulated && (P > kLongestEmulated || GetParam().is_slow() || test::kSanitized) && rule != StateRule::residual) continue;
        const Outcome<T> cpu = compress_on(Device::cpu, GetParam(), scope, rule, block);
        expect_same(cpu, compress_on(Device::cuda, GetParam(), scope, rule, block));
#if defined(FL_CUDA_EMULATOR)
        if (rule != StateRule::residual) continue;
        emulator::set_order(emulator::Order::descending);
        SCOPED_TRACE("threads in descending order");
        expect_same(cpu, compress_on(Device::cuda, GetParam(), scope, rule, block));
        emulator::set_order(emulator::Order::ascending);
#endif
      }
  }
  // Emulated threads are slow: long vectors only with an error memory, and under the sanitizers a few sizes and patterns.
  static constexpr std::size_t kLongestEmulated = 3000;
  static std::vector<std::size_t> sizes() {
    if (test::kSanitized) return {1, 17, 65, 2049};
    std::vector<std::size_t> sizes = test::kOddSizes;
    if (kEmulated) std::erase_if(sizes, [](std::size_t P) { return P > (GetParam().is_slow() ? 1 : 4) * kLongestEmulated; });
    return sizes;
  }
  static std::vector<Pattern> patterns() {
    return test::kSanitized ? std::vector<Pattern>{Pattern::ties, Pattern::zeros, Pattern::nan, Pattern::infinite} : test::kPatterns;
  }
};

TEST_P(GpuParity, SameBytesOnOddSizes) {
  std::uint32_t K = 0;
  for (const std::size_t P : sizes()) {
    K = K % 5 + 1;
    compare<float>(Pattern::uniform, K, P);
    compare<double>(Pattern::uniform, K, P);
  }
}

TEST_P(GpuParity, SameBytesOnNastyNumbers) {
  for (const Pattern pattern : patterns()) {
    compare<float>(pattern, 2, kEmulated ? 2101 : 4099);
    compare<double>(pattern, 3, kEmulated ? 531 : 2047);
  }
}

TEST(GpuInputs, HaveOneToFourTerms) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const auto compare = [](const OperatorCase& tested, auto block) {
    for (const Scope& scope : scopes_of(block.P))
      for (block.num_terms = 1; block.num_terms <= 4; ++block.num_terms) {
        SCOPED_TRACE(testing::Message() << tested.label << ", P = " << block.P << ", terms " << block.num_terms << ", segments "
                                        << scope.segments.size());
        const auto cpu = compress_on(Device::cpu, tested, scope, StateRule::residual, block);
        expect_same(cpu, compress_on(Device::cuda, tested, scope, StateRule::residual, block));
      }
  };
  for (const char* name : {"identity", "qsgd", "ef_sign", "hard_threshold", "random_k"})
    for (const std::size_t P : {516, 2051}) {
      compare({name, name, {}}, make_block<float>(Pattern::uniform, 3, P));
      compare({name, name, {}}, make_block<double>(Pattern::uniform, 2, P));
    }
}

// Rotations in several passes, of segments that are powers of two and of others, odd and even; thresholds of several clients and segments
// that come to their end after different numbers of corrections, or never.
TEST(GpuLongVectors, RotationsAndSampledThresholdsHaveTheSameBytes) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  LayerTable table;
  table.layers = {{"first", 0, 16384, 1},
                  {"second", 16384, 10001, 1},
                  {"third", 26385, 8192, 1},
                  {"fourth", 34577, 4096 + 4095, 1},
                  {"last", 42768, 3, 1}};
  const auto sampled = [](double tolerance, std::int64_t rounds, double ratio = 0.03, double sample = 0.01) {
    return Settings{{"ratio", Value{ratio}}, {"sample", Value{sample}}, {"tolerance", Value{tolerance}}, {"rounds", Value{rounds}}};
  };
  const std::vector<OperatorCase> cases = {{"drive", "drive", {}},
                                           {"eden", "eden", {}},
                                           {"dgc_sampled", "dgc_sampled", sampled(0.3, 10)},
                                           {"dgc_precise", "dgc_sampled", sampled(0.02, 7)},
                                           {"dgc_estimate", "dgc_sampled", sampled(0.3, 0)},
                                           {"dgc_below_zero", "dgc_sampled", sampled(0.99, 3)},
                                           {"dgc_few_of_a_tile", "dgc_sampled", sampled(0.3, 10, 0.01)},
                                           {"dgc_few_or_many", "dgc_sampled", sampled(0.1, 10, 0.02)},
                                           {"dgc_sample_beyond_a_block", "dgc_sampled", sampled(0.3, 2, 0.01, 0.9)}};
  for (const OperatorCase& tested : cases)
    for (const Pattern pattern : {Pattern::uniform, Pattern::ties, Pattern::sparse})
      for (const Scope& scope : {make_scope(table, ScopeKind::tensor, 0, {"third"}), make_scope(table, ScopeKind::model, 0, {})}) {
        SCOPED_TRACE(testing::Message() << tested.label << ", pattern " << static_cast<int>(pattern) << ", segments "
                                        << scope.segments.size());
        const ParityBlock<float> block = make_block<float>(pattern, 3, scope.P);
        const StateRule rule = pattern == Pattern::ties ? StateRule::none : StateRule::residual;
        const auto cpu = compress_on(Device::cpu, tested, scope, rule, block);
        expect_same(cpu, compress_on(Device::cuda, tested, scope, rule, block));
      }
}

// Every operator with its defaults but those that decompose matrices, and some with options that take other paths.
std::vector<OperatorCase> operators_with_the_same_bytes() {
  std::vector<OperatorCase> cases;
  for (const std::string& name : Registry::instance().names("compressor"))
    if (name != "powersgd" && name != "absolute_low_rank" && name != "rank_r_svd" && name != "gradzip") cases.push_back({name, name, {}});
  const auto number = [](double x) { return Value{x}; };
  const auto integer = [](std::int64_t i) { return Value{i}; };
  const Value tenth = part("top_k", {{"ratio", number(0.1)}}), random = part("random_k", {{"ratio", number(0.2)}}),
              unbiased = part("random_k", {{"scaled", Value{true}}});
  cases.push_back({"accordion_of_two", "accordion", {{"critical", tenth}, {"otherwise", random}, {"window", integer(1)}}});
  cases.push_back({"lgreco_of_three", "lgreco", {{"reference", tenth}, {"candidates", list_of({part("top_k"), random})}}});
  cases.push_back({"induced_of_levels", "induced", {{"biased", part("ef_sign")}, {"unbiased", part("qsgd")}}});
  cases.push_back({"induced_of_codes", "induced", {{"biased", part("stc")}, {"unbiased", unbiased}}});
  cases.push_back(
      {"schedule_of_two", "schedule", {{"stages", list_of({tenth, part("drive")})}, {"from", list_of({integer(1), integer(3)})}}});
  cases.push_back({"sidco_in_stages", "sidco", {{"stages", integer(3)}, {"ratio", number(0.05)}}});
  cases.push_back({"sidco_gamma", "sidco", {{"stages", integer(2)}, {"fit", Value{std::string("gamma_pareto")}}}});
  cases.push_back({"sidco_pareto", "sidco", {{"stages", integer(2)}, {"fit", Value{std::string("pareto")}}}});
  cases.push_back({"fp8_unscaled", "fp8", {{"scaled", Value{false}}}});
  cases.push_back({"sketch_of_few", "sketched_sgd", {{"rows", integer(4)}, {"columns", integer(7)}, {"ratio", number(0.3)}}});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Operators, GpuParity, testing::ValuesIn(operators_with_the_same_bytes()),
                         [](const auto& test) { return test.param.label; });

TEST(GpuRegistry, EveryCompressorExistsOnBothDevices) {
  const Registry& registry = Registry::instance();
  for (const std::string& name : registry.names("compressor"))
    for (const Device device : {Device::cpu, Device::cuda})
      for (const Precision precision : {Precision::float32, Precision::float64})
        EXPECT_TRUE(registry.contains("compressor", name, device, precision)) << name << " on " << to_string(device);
}

// Operators of matrices, which are decomposed or multiplied: devices differ by rounding alone.
class GpuMatrices : public testing::TestWithParam<OperatorCase> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
  template <class T>
  static void expect_near(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
    constexpr double kTolerance = sizeof(T) == sizeof(float) ? 1e-4 : 1e-11;
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
      ASSERT_NEAR(a[i], b[i], kTolerance) << what << " " << i;
    }
  }
  // Two matrices and a vector beside them.
  template <class T>
  static void compare(Pattern pattern, std::uint32_t K, StateRule rule) {
    LayerTable table;
    table.layers = {{"weight", 0, 17, 5}, {"bias", 85, 5, 1}, {"head", 90, 4, 6}};
    const Scope wanted = make_scope(table, ScopeKind::tensor, 0, {});
    const ParityBlock<T> block = make_block<T>(pattern, K, wanted.P);
    SCOPED_TRACE(testing::Message() << "pattern " << static_cast<int>(pattern) << ", K = " << K << ", rule " << static_cast<int>(rule));
    const auto on = [&](Device device) { return compress_on(device, GetParam(), wanted, rule, block); };
    const Outcome<T> cpu = on(Device::cpu), gpu = on(Device::cuda);
    expect_near(cpu.state, gpu.state, "state");
    expect_near(cpu.memory, gpu.memory, "memory");
    ASSERT_EQ(cpu.messages.size(), gpu.messages.size());
    for (std::size_t i = 0; i < cpu.messages.size(); ++i) {
      const Payload<T>&a = cpu.messages[i], &b = gpu.messages[i];
      EXPECT_TRUE(same_bytes(a.counts, b.counts)) << "ranks of message " << i;
      if (a.positions == Positions::factors && b.positions == Positions::factors)
        expect_near(products(a, wanted), products(b, wanted), "products");
      else
        expect_near(values(a), values(b), "values");
    }
  }

 private:
  template <class T>
  static std::vector<T> values(const Payload<T>& message) {
    return {message.value.begin(), message.value.end()};
  }
  // The signs of factors are arbitrary, their product is not.
  template <class T>
  static std::vector<T> products(const Payload<T>& message, const Scope& wanted) {
    Scope matrices = wanted;  // vectors travel beside them
    const auto is_vector = [](const Segment& segment) { return segment.cols == 1; };
    std::ranges::copy_if(matrices.segments, std::back_inserter(matrices.excluded), is_vector);
    std::erase_if(matrices.segments, is_vector);
    std::vector<T> dense(wanted.P);
    write_dense(message, matrices, dense.data());
    return dense;
  }
};

TEST_P(GpuMatrices, AgreeUpToRounding) {
  for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
    compare<double>(Pattern::uniform, 1, rule);
    compare<float>(Pattern::uniform, 2, rule);
  }
  for (const Pattern pattern : {Pattern::ties, Pattern::zeros, Pattern::sparse, Pattern::nan, Pattern::infinite})
    compare<double>(pattern, 3, StateRule::residual);
}

std::vector<OperatorCase> operators_of_matrices() {
  const Value two = part("rank_r_svd"), one = part("rank_r_svd", {{"rank", Value{std::int64_t{1}}}});
  return {{"powersgd", "powersgd", {}},
          {"rank_r_svd", "rank_r_svd", {}},
          {"rank_5", "rank_r_svd", {{"rank", Value{std::int64_t{5}}}}},
          {"absolute_low_rank", "absolute_low_rank", {{"threshold", Value{3.0}}}},
          {"atomo", "atomo", {{"atoms", Value{std::string("singular")}}}},
          {"gradzip", "gradzip", {}},
          {"gradzip_3", "gradzip", {{"rank", Value{std::int64_t{3}}}}},
          {"accordion", "accordion", {{"critical", two}, {"otherwise", one}, {"window", Value{std::int64_t{1}}}}},
          {"lgreco", "lgreco", {{"reference", two}, {"candidates", list_of({one})}}},
          {"induced", "induced", {{"biased", two}, {"unbiased", part("random_k", {{"scaled", Value{true}}})}}}};
}
INSTANTIATE_TEST_SUITE_P(Operators, GpuMatrices, testing::ValuesIn(operators_of_matrices()),
                         [](const auto& test) { return test.param.label; });

}  // namespace
}  // namespace fl
