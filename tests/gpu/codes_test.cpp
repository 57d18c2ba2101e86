// Operators whose messages are codes, on the GPU against the CPU: the same bytes for matrices and long vectors, and the same entries where
// a receiver computes them. Skipped without a GPU; the emulator takes threads in both orders.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compressors/conversation.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"
#include "tests/gpu/same_messages.hpp"

namespace fl {
namespace {

using test::Pattern;
using test::Where;
using Settings = std::vector<std::pair<std::string, Value>>;

struct CodeCase {
  std::string label, name;
  Settings settings;
};
void PrintTo(const CodeCase& c, std::ostream* out) { *out << c.label; }

// A block on a device: inputs p = e + 0.5 g, states over e, messages.
template <class T>
class CodeBlock {
 public:
  CodeBlock(Device device, const CodeCase& tested, const Scope& scope, Pattern pattern, std::uint32_t K)
      : op_(make_part<Compressor<T>>("compressor", tested.name, test::compressor_options(tested.name, tested.settings), device,
                                     kPrecisionOf<T>)),
        scope_(scope),
        workspace_(device),
        e_(K * scope.P, device),
        g_(K * scope.P, device),
        messages_(K) {
    exec_.device = device;
    exec_.workspace = &workspace_;
    std::vector<T> e, g;
    for (std::uint32_t k = 0; k < K; ++k) {
      const RandomStream stream(7, k, 0);
      clients_.push_back(100 + 3 * k);
      for (std::size_t j = 0; j < scope.P; ++j) {
        e.push_back(test::number<T>(pattern, stream.bits(2 * j), j));
        g.push_back(test::number<T>(pattern, stream.bits(2 * j + 1), j));
      }
    }
    copy_bytes(e_.data(), device, e.data(), Device::cpu, e.size() * sizeof(T));
    copy_bytes(g_.data(), device, g.data(), Device::cpu, g.size() * sizeof(T));
  }
  void compress(StateRule rule) {
    const auto K = static_cast<std::uint32_t>(clients_.size());
    std::vector<Payload<T>*> pointers;
    for (Payload<T>& message : messages_) pointers.push_back(&message);
    Affine<T> input;
    input.add(T(1), {e_.data(), nullptr, K, scope_.P, scope_.P}).add(T(0.5), {g_.data(), nullptr, K, scope_.P, scope_.P});
    Conversation<T> conversation(*op_, scope_, 42);
    conversation.open(3);
    conversation.send(exec_, {.clients = clients_, .input = input, .state = {rule, {e_.data(), nullptr, K, scope_.P, scope_.P}}}, pointers);
  }
  // Replaces the messages by what arrives of those of another block, and computes their entries.
  void receive(const CodeBlock& from) {
    std::vector<Payload<T>*> pointers;
    for (std::size_t k = 0; k < messages_.size(); ++k) {
      messages_[k] = Payload<T>{};
      messages_[k].place_on(exec_.device);
      cuda::copy_payload(from.messages_[k].on_wire(), messages_[k], nullptr);
      pointers.push_back(&messages_[k]);
    }
    Conversation<T> conversation(*op_, scope_, 42);
    conversation.open(3);
    conversation.reconstruct(exec_, clients_, pointers);
  }
  [[nodiscard]] std::vector<Payload<T>> messages() const {
    std::vector<Payload<T>> here(messages_.size());
    for (std::size_t k = 0; k < here.size(); ++k) cuda::copy_payload(messages_[k], here[k], nullptr);
    return here;
  }
  [[nodiscard]] std::vector<T> state() const {
    std::vector<T> here(e_.size());
    copy_bytes(here.data(), Device::cpu, e_.data(), e_.device(), here.size() * sizeof(T));
    return here;
  }

 private:
  std::unique_ptr<Compressor<T>> op_;
  const Scope& scope_;
  Workspace workspace_;
  Exec exec_;
  Buffer<T> e_, g_;
  std::vector<std::uint32_t> clients_;
  std::vector<Payload<T>> messages_;
};

class GpuCodes : public testing::TestWithParam<CodeCase> {
 protected:
  template <class T>
  static void compare(const Scope& scope, Pattern pattern, StateRule rule) {
    const Where where = test::of_vectors<T>(test::operator_text(GetParam().name, GetParam().settings), pattern, 2, scope)
                            .with("rule " + std::string(test::to_string(rule)));
    CodeBlock<T> cpu(Device::cpu, GetParam(), scope, pattern, 2), received(Device::cpu, GetParam(), scope, pattern, 2);
    cpu.compress(rule);
    received.receive(cpu);
    test::in_each_order(where, [&](const Where& here) {
      CodeBlock<T> gpu(Device::cuda, GetParam(), scope, pattern, 2), receiver(Device::cuda, GetParam(), scope, pattern, 2);
      gpu.compress(rule);
      EXPECT_TRUE(same_messages(here, cpu.messages(), gpu.messages()));
      EXPECT_TRUE(same_words(here, "state", cpu.state(), gpu.state()));
      receiver.receive(gpu);
      EXPECT_TRUE(same_messages(here.with("as received"), received.messages(), receiver.messages()));
    });
  }
};

TEST_P(GpuCodes, MatricesAndLongVectorsHaveTheSameBytes) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  LayerTable table;
  std::size_t begin = 0;
  for (const auto& [rows, cols] :
       std::vector<std::pair<std::size_t, std::size_t>>{{7, 13}, {1, 5}, {33, 70}, {2, 2100}, {2501, 1}, {4, 4}}) {
    table.layers.push_back({"layer" + std::to_string(begin), begin, rows, cols});
    begin += rows * cols;
  }
  for (const Scope& scope : {make_scope(table, ScopeKind::tensor, 0, {"layer91"}), make_scope(table, ScopeKind::model, 0, {})}) {
    compare<float>(scope, Pattern::uniform, StateRule::residual);
    compare<double>(scope, Pattern::ties, StateRule::zero_where_sent);
    compare<float>(scope, Pattern::sparse, StateRule::none);
  }
}

std::vector<CodeCase> codes() {
  const auto choice = [](const char* option, const char* value) { return Settings{{option, Value{std::string(value)}}}; };
  return {{"sz", "sz", {}},   {"sz_none", "sz", choice("predictor", "none")},   {"sz_plane", "sz", choice("predictor", "plane")},
          {"zfp", "zfp", {}}, {"zfp_square", "zfp", choice("block", "square")}, {"drive", "drive", {}}};
}
INSTANTIATE_TEST_SUITE_P(Operators, GpuCodes, testing::ValuesIn(codes()), [](const auto& test) { return test.param.label; });

}  // namespace
}  // namespace fl
