// Operators on the GPU against the same operators on the CPU: the same message, state and memory, byte for byte, on sizes that end in the
// middle of everything, on zeros, ties, denormal numbers and infinities, for one to five clients. Where matrices are decomposed devices
// agree up to rounding. Without a GPU everything is skipped.
// With FL_CUDA_EMULATOR kernels run on the CPU, threads in ascending order and in descending order: one that forgot to wait shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"
#include "tests/gpu/operator_outcome.cuh"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::compress_on;
using test::make_block;
using test::OperatorCase;
using test::Outcome;
using test::ParityBlock;
using test::Pattern;
using test::Settings;
using test::Where;

#if defined(FL_CUDA_EMULATOR)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

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

// A model of P parameters with two layers, in the scopes that an operator may be asked for.
std::vector<Scope> scopes_of(std::size_t P) {
  LayerTable table;
  const std::size_t head = P > 1 ? P / 3 + 1 : P;
  table.layers.push_back({"weight", 0, head, 1});
  if (head < P) table.layers.push_back({"bias", head, P - head, 1});
  std::vector<Scope> scopes = {make_scope(table, ScopeKind::model, 0, {}), make_scope(table, ScopeKind::tensor, 0, {}),
                               make_scope(table, ScopeKind::bucket, 512, {})};
  if (head < P) scopes.push_back(make_scope(table, ScopeKind::tensor, 0, {"bias"}));
  for (Scope& scope : scopes) scope.clients = 300;
  return scopes;
}

Where where_of(const OperatorCase& tested, Pattern pattern, const auto& block, const Scope& scope, StateRule rule) {
  using T = typename std::decay_t<decltype(block.e)>::value_type;
  return test::of_vectors<T>(tested.text(), pattern, block.K, scope).with("rule " + std::string(test::to_string(rule)));
}

// Compares the GPU with the CPU on one block.
template <class T>
void expect_same(const Where& where, const OperatorCase& tested, const Scope& scope, StateRule rule, const ParityBlock<T>& block) {
  EXPECT_TRUE(
      same_outcome(where, compress_on(Device::cpu, tested, scope, rule, block), compress_on(Device::cuda, tested, scope, rule, block)));
}

// Suites whose cases share their memory.
class GpuOperators : public testing::Test {
 protected:
  static void TearDownTestSuite() { test::release_rooms(); }
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
};
class GpuInputs : public GpuOperators {};
class GpuLongVectors : public GpuOperators {};

class GpuParity : public GpuOperators, public testing::WithParamInterface<OperatorCase> {
 protected:
  template <class T>
  void compare(Pattern pattern, std::uint32_t K, std::size_t P) {
    const ParityBlock<T> block = make_block<T>(pattern, K, P);
    for (const Scope& scope : scopes_of(P))
      for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
        if (rule == StateRule::zero_where_sent && GetParam().name == "stc") continue;
        if (kEmulated && (P > kLongestEmulated || GetParam().is_slow() || test::kSanitized) && rule != StateRule::residual) continue;
        const Outcome<T> cpu = compress_on(Device::cpu, GetParam(), scope, rule, block);
        const auto check = [&](const Where& where) {
          EXPECT_TRUE(same_outcome(where, cpu, compress_on(Device::cuda, GetParam(), scope, rule, block)));
        };
        const Where where = where_of(GetParam(), pattern, block, scope, rule);
        if (rule == StateRule::residual)
          test::in_each_order(where, check);
        else
          check(where);
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

TEST_F(GpuInputs, HaveOneToFourTerms) {
  const auto compare = [](const OperatorCase& tested, auto block) {
    for (const Scope& scope : scopes_of(block.P))
      for (block.num_terms = 1; block.num_terms <= 4; ++block.num_terms)
        expect_same(where_of(tested, Pattern::uniform, block, scope, StateRule::residual)
                        .with(std::to_string(block.num_terms) + (block.num_terms == 1 ? " term" : " terms")),
                    tested, scope, StateRule::residual, block);
  };
  for (const char* name : {"identity", "qsgd", "ef_sign", "hard_threshold", "random_k"})
    for (const std::size_t P : {516, 2051}) {
      compare({name, name, {}}, make_block<float>(Pattern::uniform, 3, P));
      compare({name, name, {}}, make_block<double>(Pattern::uniform, 2, P));
    }
}

// Rotations in several passes, of segments that are powers of two and of others, odd and even; thresholds of several clients and segments
// that come to their end after different numbers of corrections, or never.
TEST_F(GpuLongVectors, RotationsAndSampledThresholdsHaveTheSameBytes) {
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
        const ParityBlock<float> block = make_block<float>(pattern, 3, scope.P);
        const StateRule rule = pattern == Pattern::ties ? StateRule::none : StateRule::residual;
        expect_same(where_of(tested, pattern, block, scope, rule), tested, scope, rule, block);
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
  cases.push_back({"perm_k_of_five", "perm_k", {{"clients", integer(5)}}});
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
class GpuMatrices : public GpuOperators, public testing::WithParamInterface<OperatorCase> {
 protected:
  // Two matrices and a vector beside them.
  template <class T>
  static void compare(Pattern pattern, std::uint32_t K, StateRule rule) {
    constexpr double kTolerance = sizeof(T) == sizeof(float) ? 1e-4 : 1e-11;
    LayerTable table;
    table.layers = {{"weight", 0, 17, 5}, {"bias", 85, 5, 1}, {"head", 90, 4, 6}};
    const Scope wanted = make_scope(table, ScopeKind::tensor, 0, {});
    const ParityBlock<T> block = make_block<T>(pattern, K, wanted.P);
    const Where where = where_of(GetParam(), pattern, block, wanted, rule);
    const auto on = [&](Device device) { return compress_on(device, GetParam(), wanted, rule, block); };
    const Outcome<T> cpu = on(Device::cpu), gpu = on(Device::cuda);
    EXPECT_TRUE(test::near_numbers(where, "state", cpu.state, gpu.state, kTolerance));
    EXPECT_TRUE(test::near_numbers(where, "memory", cpu.memory, gpu.memory, kTolerance));
    EXPECT_TRUE(test::same_words(where, "changes behind the end of state and memory", cpu.behind, gpu.behind));
    ASSERT_TRUE(test::same_value(where, "number of messages", cpu.messages.size(), gpu.messages.size()));
    for (std::size_t i = 0; i < cpu.messages.size(); ++i) {
      const Payload<T>&a = cpu.messages[i], &b = gpu.messages[i];
      const std::string of = " of message " + std::to_string(i);
      EXPECT_TRUE(test::same_words(where, "ranks" + of, a.counts, b.counts));
      if (a.positions == Positions::factors && b.positions == Positions::factors)
        EXPECT_TRUE(test::near_numbers(where, "products" + of, products(a, wanted), products(b, wanted), kTolerance));
      else
        EXPECT_TRUE(test::near_numbers(where, "values" + of, a.value, b.value, kTolerance));
    }
  }

 private:
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
