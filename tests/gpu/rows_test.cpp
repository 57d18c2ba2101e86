// Compares operations on clients' rows and messages on the GPU with the CPU's, byte for byte: norms, the part removed by compression,
// messages added to state, weighted sums of rows. Skipped without a GPU; the emulator takes threads in both orders.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cpu/linalg.hpp"
#include "fl_core/ops/cuda/linalg.cuh"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "fl_core/ops/message_sums.hpp"
#include "fl_core/ops/row_moves.hpp"
#include "fl_core/ops/row_norms.hpp"
#include "fl_core/ops/row_sums.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::Where;

// Rows of K clients in another order than theirs, on the host and where a GPU reaches them.
template <class T>
class Rows {
 public:
  Rows(std::uint32_t K, std::size_t P, std::uint32_t salt)
      : K_(K), P_(P), stride_(aligned_stride<T>(P)), here_(K * stride_), there_(K * stride_, Device::managed), numbers_(K) {
    for (std::uint32_t k = 0; k < K; ++k) {
      numbers_[k] = (k * 3 + 1) % K;
      for (std::size_t j = 0; j < P; ++j)
        here_[numbers_[k] * stride_ + j] =
            test::number<T>(test::Pattern::uniform, static_cast<std::uint32_t>(hash64(salt, std::uint64_t{k} << 32 | j)), j);
    }
    std::copy(here_.begin(), here_.end(), there_.begin());
    numbers_there_.resize_discard(K);
    std::copy(numbers_.begin(), numbers_.end(), numbers_there_.begin());
  }
  [[nodiscard]] BatchView<T> here() { return {here_.data(), numbers_.data(), K_, P_, stride_}; }
  [[nodiscard]] BatchView<T> there() { return {there_.data(), numbers_there_.data(), K_, P_, stride_}; }
  // As there(), with row numbers of the host's memory.
  [[nodiscard]] BatchView<T> there_by_host() { return {there_.data(), numbers_.data(), K_, P_, stride_}; }
  // Compares the rows in memory, [K,stride].
  [[nodiscard]] testing::AssertionResult are_the_same(const Where& where) const {
    return same_words(where, "rows with a stride of " + std::to_string(stride_), here_, there_);
  }

 private:
  std::uint32_t K_;
  std::size_t P_, stride_;
  std::vector<T> here_;
  Buffer<T> there_;
  std::vector<std::uint32_t> numbers_;
  Buffer<std::uint32_t> numbers_there_{0, Device::managed};
};

class Gpu {
 public:
  Gpu() {
    exec.device = Device::cuda;
    exec.stream = stream_.get();
    exec.workspace = &workspace_;
  }
  Exec exec;

 private:
  DeviceStream stream_{Device::cuda};
  Workspace workspace_{Device::cuda};
};

class Host {
 public:
  Host() { exec.workspace = &workspace_; }
  Exec exec;

 private:
  Workspace workspace_;
};

template <class T>
Where of_rows(const std::string& what, std::uint32_t K, std::size_t P) {
  return {.what = what, .pattern = "uniform", .K = K, .P = P, .precision = test::kPrecisionName<T>};
}

class GpuMessages : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
  template <class T>
  void compare(std::uint32_t K, std::size_t P) {
    for (Scope scope : test::message_scopes(P)) {
      std::vector<Payload<T>> here = test::compressed<T>(GetParam(), scope, test::Pattern::uniform, K), there(K);
      std::vector<Payload<T>*> on_host, on_device;
      std::vector<const Payload<T>*> some_here, some_there;
      for (std::uint32_t k = 0; k < K; ++k) {
        there[k].place_on(Device::managed);
        cuda::copy_payload(here[k], there[k], nullptr);
        if (k == 1) here[k].silent = there[k].silent = true;
        on_host.push_back(&here[k]);
        on_device.push_back(&there[k]);
        some_here.push_back(k == 2 ? nullptr : &here[k]);
        some_there.push_back(k == 2 ? nullptr : &there[k]);
      }
      if (!lies_on_device(there[0])) return;
      const Where messages = test::of_vectors<T>("messages of " + test::operator_text(GetParam()), test::Pattern::uniform, K, scope);
      test::in_each_order(messages, [&](const Where& where) {
        Gpu gpu;
        Host host;
        Rows<T> a(K, P, 5), b(K, P, 6);
        const Affine<T> input_here = Affine<T>().add(T(1), a.here()).add(T(0.3), b.here());
        const Affine<T> input_there = Affine<T>().add(T(1), a.there()).add(T(0.3), b.there());
        std::vector<double> expected(K), norms(K);
        sums_of_squared_errors<T>(host.exec, input_here, scope, on_host, expected);
        sums_of_squared_errors<T>(gpu.exec, input_there, scope, on_device, norms);
        EXPECT_TRUE(same_numbers(where, "sums_of_squared_errors", expected, norms));
        sums_of_squares<T>(host.exec, input_here, expected);
        sums_of_squares<T>(gpu.exec, input_there, norms);
        EXPECT_TRUE(same_numbers(where, "sums_of_squares", expected, norms));
        EXPECT_GT(expected[0], 0);

        add_messages<T>(host.exec, some_here, scope, T(0.7), a.here());
        add_messages<T>(gpu.exec, some_there, scope, T(0.7), a.there());
        synchronise(gpu.exec);
        EXPECT_TRUE(a.are_the_same(where.with("add_messages")));
      });
    }
  }
};

TEST_P(GpuMessages, AreMeasuredAndAddedAsOnTheCpu) {
  compare<float>(1, 131);
  compare<float>(5, 2501);
  compare<double>(4, 997);
}

INSTANTIATE_TEST_SUITE_P(Operators, GpuMessages, testing::ValuesIn(test::device_operators()),
                         [](const auto& test) { return std::string(test.param); });

// Factors of rank 2 and 0, and excluded values, as low-rank operators send them.
std::vector<Payload<float>> factors(const Scope& scope, std::uint32_t K) {
  std::vector<Payload<float>> messages(K);
  for (std::uint32_t k = 0; k < K; ++k) {
    Payload<float>& message = messages[k];
    message.clear(scope.P);
    message.positions = Positions::factors;
    message.counts.resize_discard(scope.segments.size());
    std::size_t size = 0, excluded = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      message.counts[s] = (s + k) % 2 == 0 ? 2 : 0;
      size += message.counts[s] * (scope.segments[s].rows + scope.segments[s].cols);
    }
    for (const Segment& tensor : scope.excluded) excluded += tensor.size();
    message.num_sent = size;
    message.value.resize_discard(size);
    message.excluded.resize_discard(excluded);
    for (std::size_t i = 0; i < size; ++i) message.value[i] = 0.01f * static_cast<float>((i * 37 + k) % 101) - 0.5f;
    for (std::size_t i = 0; i < excluded; ++i) message.excluded[i] = static_cast<float>(i);
  }
  return messages;
}

TEST(GpuRows, TakeProductsOfFactors) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  LayerTable table;
  table.layers = {{"weight", 0, 12, 31}, {"bias", 372, 12, 1}, {"head", 384, 5, 13}};
  const Scope scope = make_scope(table, ScopeKind::tensor, 0, {"bias"});
  constexpr std::uint32_t kClients = 4;
  const std::vector<Payload<float>> here = factors(scope, kClients);
  std::vector<Payload<float>> there(kClients);
  std::vector<const Payload<float>*> on_host, on_device;
  for (std::uint32_t k = 0; k < kClients; ++k) {
    there[k].place_on(Device::managed);
    cuda::copy_payload(here[k], there[k], nullptr);
    on_host.push_back(&here[k]);
    on_device.push_back(&there[k]);
  }
  Gpu gpu;
  Host host;
  Rows<float> rows(kClients, scope.P, 3);
  add_messages<float>(host.exec, on_host, scope, -1.0f, rows.here());
  add_messages<float>(gpu.exec, on_device, scope, -1.0f, rows.there());
  synchronise(gpu.exec);
  EXPECT_TRUE(rows.are_the_same(of_rows<float>("add_messages of factors", kClients, scope.P)));
}

TEST(GpuRows, AreAddedUpAsOnTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const auto& [K, P] : {std::pair<std::uint32_t, std::size_t>{1, 1}, {7, 3001}, {40, 513}}) {
    Rows<float> rows(K, P, 9);
    std::vector<double> factor(K), here(P), there;
    for (std::uint32_t k = 0; k < K; ++k) factor[k] = k % 3 == 1 ? -0.37 * k : 1.0 / (k + 1);
    for (std::size_t j = 0; j < P; ++j) here[j] = 0.1 * static_cast<double>(j);
    there = here;
    ThreadPool pool(2);
    RowSums<float> sums(pool);
    sums.add(Device::cpu, rows.here(), factor, here);
    sums.add(Device::managed, rows.there_by_host(), factor, there);
    EXPECT_TRUE(same_numbers(of_rows<float>("RowSums", K, P), "sum", here, there));
  }
}

TEST(GpuRows, AreCopiedAndClearedAsOnTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const auto& shape : {std::pair<std::uint32_t, std::size_t>{1, 1}, {7, 3001}, {40, 513}})
    test::in_each_order(of_rows<double>("rows", shape.first, shape.second), [K = shape.first, P = shape.second](const Where& where) {
      Gpu gpu;
      Host host;
      Rows<double> from(K, P, 3), to(K, P, 4);
      copy_rows<double>(host.exec, from.here(), to.here());
      copy_rows<double>(gpu.exec, from.there(), to.there());
      synchronise(gpu.exec);
      EXPECT_TRUE(to.are_the_same(where.with("copy_rows")));
      clear_entries<double>(host.exec, to.here(), P / 3, P);
      clear_entries<double>(gpu.exec, to.there(), P / 3, P);
      synchronise(gpu.exec);
      EXPECT_TRUE(to.are_the_same(where.with("clear_entries")));
      EXPECT_EQ(to.here().row(K - 1)[P - 1], 0);
    });
}

// K vectors of n numbers; a GPU takes one pass over those of up to 4,096 numbers, and three over those of four million.
template <class T>
void compare_hadamard(std::size_t K, std::size_t n) {
  std::vector<T> x(K * n), expected, found(K * n);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(0x1p-20) * static_cast<T>(hash64(9, j) >> 40) - 7;
  expected = x;
  Host host;
  cpu::hadamard_rows(host.exec, expected.data(), K, n);
  test::in_each_order(of_rows<T>("hadamard_rows", static_cast<std::uint32_t>(K), n), [&](const Where& where) {
    Gpu gpu;
    Buffer<T> there(x.size(), Device::cuda);
    copy_bytes(there.data(), Device::cuda, x.data(), Device::cpu, x.size() * sizeof(T), gpu.exec.stream);
    cuda::hadamard_rows(gpu.exec, there.data(), K, n);
    copy_bytes(found.data(), Device::cpu, there.data(), Device::cuda, x.size() * sizeof(T), gpu.exec.stream);
    EXPECT_TRUE(same_words(where, "transformed vectors", expected, found));
  });
}

TEST(GpuRows, AreMultipliedByTheWalshHadamardMatrixAsOnTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const std::size_t n : {1, 2, 8, 512, 4096}) compare_hadamard<float>(5, n);
  compare_hadamard<double>(3, 8192);
  compare_hadamard<float>(2, 1 << 16);
  if (!test::kSanitized) compare_hadamard<float>(1, 1 << 22);
}

}  // namespace
}  // namespace fl
