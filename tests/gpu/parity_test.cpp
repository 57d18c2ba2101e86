// Operators on the GPU against the same operators on the CPU: the same message and the same state, byte for byte, on sizes that end in the
// middle of everything, on zeros, ties, denormal numbers and infinities, for one to five clients. Without a GPU everything is skipped.
// With FL_CUDA_EMULATOR kernels run on the CPU, threads in ascending order and in descending order: one that forgot to wait shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/cuda/memory.hpp"
#include "fl_core/cuda/payload_copy.hpp"
#include "fl_core/registry.hpp"
#include "tests/fl_core/cpu/verb_cases.hpp"
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

// What one device made of a block of clients, brought to the host.
template <class T>
struct Outcome {
  std::vector<Payload<T>> messages;  // [K]
  std::vector<T> state;              // [K,P]
};

// One block of clients: K x P inputs, p = 1 * e + 0.5 * g, the state written over e.
template <class T>
struct Block {
  std::uint32_t K;
  std::size_t P;
  std::vector<T> e, g;  // [K,P]
  std::vector<std::uint32_t> clients, rows;
};

template <class T>
Block<T> make_block(Pattern pattern, std::uint32_t K, std::size_t P) {
  Block<T> block{K, P, {}, {}, {}, {}};
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

template <class T>
Outcome<T> compress_on(Device device, const std::string& name, const Scope& wanted, StateRule rule, const Block<T>& block) {
  const std::unique_ptr<Compressor<T>> op =
      make_part<Compressor<T>>("compressor", name, Registry::instance().default_options("compressor", name), device, kPrecisionOf<T>);
  const Scope scope = op->adapt(wanted);
  Workspace workspace(device);
  Exec exec;
  exec.device = device;
  exec.workspace = &workspace;
  Buffer<T> e = place(block.e, device), g = place(block.g, device);
  const Buffer<std::uint32_t> rows = place(block.rows, device);
  Affine<T> input;
  input.add(T(1), BatchView<const T>{e.data(), rows.data(), block.K, block.P, block.P});
  input.add(T(0.5), BatchView<const T>{g.data(), nullptr, block.K, block.P, block.P});
  CompressContext<T> context;
  context.round = 3;
  context.random_key = 42;
  context.clients = block.clients;

  std::vector<Payload<T>> messages(block.K);
  std::vector<Payload<T>*> pointers;
  for (Payload<T>& message : messages) {
    message.clear(block.P);
    pointers.push_back(&message);
  }
  const StateWrite<T> state{rule, {e.data(), rows.data(), block.K, block.P, block.P}};
  op->compress(exec, context, input, scope, state, pointers);

  Outcome<T> outcome{std::vector<Payload<T>>(block.K), std::vector<T>(block.e.size())};
  for (std::uint32_t k = 0; k < block.K; ++k) cuda::copy_payload(messages[k], outcome.messages[k], nullptr);
  copy_bytes(outcome.state.data(), Device::cpu, e.data(), device, outcome.state.size() * sizeof(T));
  return outcome;
}

// Two NaN are the same whatever their payload, which processors choose differently.
template <class U>
bool same_bytes(const U* a, const U* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<U>)
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(a + i, b + i, sizeof(U)) != 0) return false;
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
  for (std::size_t k = 0; k < cpu.messages.size(); ++k) {
    SCOPED_TRACE(testing::Message() << "client " << k);
    expect_same(cpu.messages[k], gpu.messages[k]);
  }
  EXPECT_TRUE(same_bytes(cpu.state.data(), gpu.state.data(), cpu.state.size())) << "state";
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

class GpuParity : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU is visible to the CUDA driver";
  }
  template <class T>
  void compare(Pattern pattern, std::uint32_t K, std::size_t P) {
    const Block<T> block = make_block<T>(pattern, K, P);
    for (const Scope& scope : scopes_of(P))
      for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
        if (rule == StateRule::zero_where_sent && GetParam() == "stc") continue;
        SCOPED_TRACE(testing::Message() << GetParam() << ", pattern " << static_cast<int>(pattern) << ", K = " << K << ", P = " << P
                                        << ", segments " << scope.segments.size() << ", rule " << static_cast<int>(rule));
        if (kEmulated && (P > kLongestEmulated || test::kSanitized) && rule != StateRule::residual) continue;
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
    if (kEmulated) std::erase_if(sizes, [](std::size_t P) { return P > 20 * kLongestEmulated; });
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

// Of these the work is irregular and done by the host; a run on a GPU brings it their input.
const std::set<std::string>& host_operators() {
  static const std::set<std::string> names = {"absolute_low_rank", "accordion", "atomo", "gradzip",      "induced",       "lgreco",
                                              "rank_r_svd",        "schedule",  "sidco", "sketched_sgd", "variance_based"};
  return names;
}

std::vector<std::string> operators_with_the_same_bytes() {
  std::vector<std::string> names;
  for (const std::string& name : Registry::instance().names("compressor"))
    if (name != "powersgd" && !host_operators().contains(name)) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Operators, GpuParity, testing::ValuesIn(operators_with_the_same_bytes()),
                         [](const auto& test) { return std::string(test.param); });

TEST(GpuRegistry, EveryCompressorExistsOnBothDevicesUnlessItIsTheHosts) {
  const Registry& registry = Registry::instance();
  for (const std::string& name : registry.names("compressor"))
    for (const Precision precision : {Precision::float32, Precision::float64}) {
      EXPECT_TRUE(registry.contains("compressor", name, Device::cpu, precision)) << name;
      EXPECT_EQ(registry.contains("compressor", name, Device::cuda, precision), !host_operators().contains(name)) << name;
    }
}

// Both phases on one matrix [37,21]: matrix products differ by rounding alone.
TEST(GpuPowerSgd, AgreesUpToRounding) {
  if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU is visible to the CUDA driver";
  LayerTable table;
  table.layers = {{"weight", 0, 37, 21}, {"bias", 777, 5, 1}};
  const Scope wanted = make_scope(table, ScopeKind::tensor, 0, {});
  const Options options = Registry::instance().default_options("compressor", "powersgd");
  const Block<double> block = make_block<double>(Pattern::uniform, 1, wanted.P);
  std::vector<double> sent[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    const auto op = make_part<Compressor<double>>("compressor", "powersgd", options, device, Precision::float64);
    const Scope scope = op->adapt(wanted);
    std::vector<double> shared(op->cohort_state_size(scope)), estimate(scope.P);
    op->init_cohort_state(42, scope, shared.data());
    Workspace workspace(device);
    Exec exec;
    exec.device = device;
    exec.workspace = &workspace;
    Buffer<double> e = place(block.e, device);
    for (int phase = 0; phase < 2; ++phase) {
      const Buffer<double> shared_there = place(shared, device);
      CompressContext<double> context;
      context.phase = phase;
      context.clients = block.clients;
      context.shared = shared_there.data();
      Affine<double> input;
      input.add(1.0, BatchView<const double>{e.data(), nullptr, 1, scope.P, scope.P});
      Payload<double> message, host;
      message.clear(op->message_length(phase, scope));
      Payload<double>* pointer = &message;
      const StateWrite<double> state{phase == 1 ? StateRule::residual : StateRule::none, {e.data(), nullptr, 1, scope.P, scope.P}};
      op->compress(exec, context, input, scope, state, std::span<Payload<double>* const>(&pointer, 1));
      cuda::copy_payload(message, host, nullptr);
      sent[static_cast<int>(device)].insert(sent[static_cast<int>(device)].end(), host.value.begin(), host.value.end());
      op->absorb_mean(phase, scope, host.value.span(), shared.data(), estimate.data());
    }
    std::vector<double> residual(scope.P);
    copy_bytes(residual.data(), Device::cpu, e.data(), device, residual.size() * sizeof(double));
    sent[static_cast<int>(device)].insert(sent[static_cast<int>(device)].end(), residual.begin(), residual.end());
  }
  ASSERT_EQ(sent[0].size(), sent[1].size());
  for (std::size_t i = 0; i < sent[0].size(); ++i) ASSERT_NEAR(sent[0][i], sent[1][i], 1e-12) << "entry " << i;
}

}  // namespace
}  // namespace fl
