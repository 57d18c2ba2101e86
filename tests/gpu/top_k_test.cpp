// Compares the largest entries on the GPU with those on the CPU, byte for byte, on segments large enough for candidates
// (fl_core/ops/cuda/candidates.cuh): misleading samples, ties, zeros, NaN and infinities, segments of several kinds in one call. Skipped
// without a GPU; the emulator takes threads in both orders.
#include "fl_core/ops/cpu/top_k.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cuda/candidates.cuh"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "fl_core/ops/cuda/top_k.cuh"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"
#include "tests/gpu/same_messages.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using cuda::Found;
using cuda::Way;
using test::Where;

// The kind of vectors, and the effect of their sample.
enum class SampledInput {
  uniform,
  rising,
  falling,
  seen_only,
  unseen_only,
  some_unseen,
  equal,
  zeros,
  few,
  ties,
  nan,
  infinite,
  denormal,
  alike
};
constexpr SampledInput kSampledInputs[] = {
    SampledInput::uniform,     SampledInput::rising,   SampledInput::falling,  SampledInput::seen_only, SampledInput::unseen_only,
    SampledInput::some_unseen, SampledInput::equal,    SampledInput::zeros,    SampledInput::few,       SampledInput::ties,
    SampledInput::nan,         SampledInput::infinite, SampledInput::denormal, SampledInput::alike};
// Under the sanitizers one input for each way.
bool is_left_out(SampledInput input) {
  return test::kSanitized && input != SampledInput::ties && input != SampledInput::seen_only && input != SampledInput::unseen_only &&
         input != SampledInput::few;
}
const char* to_string(SampledInput input) {
  constexpr const char* kNames[] = {"uniform", "rising", "falling", "seen_only", "unseen_only", "some_unseen", "equal",
                                    "zeros",   "few",    "ties",    "nan",       "infinite",    "denormal",    "alike"};
  return kNames[static_cast<std::size_t>(input)];
}
[[maybe_unused]] void PrintTo(SampledInput input, std::ostream* out) { *out << to_string(input); }

// Returns whether the sample for a segment's bound contains its element i.
bool is_sampled(const cuda::Sample& sample, std::size_t i) {
  if (sample.step < cuda::kSampleRun) return false;  // of a small segment, which has no sample
  const auto run = static_cast<unsigned>(i / sample.step);
  return run < sample.num_runs && i >= sample.place(run) && i < sample.place(run) + cuda::kSampleRun;
}

template <class T>
T number(SampledInput input, std::uint64_t word, std::size_t i, std::size_t size, const cuda::Sample& sample) {
  using Limits = std::numeric_limits<T>;
  const T u = static_cast<T>(static_cast<double>(word >> 11) * 0x1p-53), sign = word % 2 == 0 ? T(1) : T(-1);
  const auto place = static_cast<T>(i + 1) / static_cast<T>(size);
  switch (input) {
    case SampledInput::uniform: return sign * u;
    case SampledInput::rising: return sign * place;
    case SampledInput::falling: return sign * (T(2) - place);
    case SampledInput::seen_only: return sign * (is_sampled(sample, i) ? 100 + u : u);
    case SampledInput::unseen_only: return sign * (is_sampled(sample, i) ? u : 100 + u);
    case SampledInput::some_unseen: return sign * (word % 8 == 0 && !is_sampled(sample, i) ? 100 + u : u);
    case SampledInput::equal: return sign * T(0.25);
    case SampledInput::zeros: return sign * T(0);
    case SampledInput::few: return word % 1009 == 0 ? u : sign * T(0);
    case SampledInput::ties: return sign * std::floor(150 * u);
    case SampledInput::nan: return word % 97 == 0 ? Limits::quiet_NaN() : sign * u;
    case SampledInput::infinite: return word % 43 == 0 ? sign * Limits::infinity() : sign * u;
    case SampledInput::denormal: return sign * u * Limits::min();
    case SampledInput::alike: return sign * (i / 64 % 50 == 0 ? 10 + u : u);  // large ones side by side
  }
  return 0;
}

struct Selection {
  std::uint32_t K = 1;
  Scope scope;
  std::vector<std::uint32_t> k;  // [S]
  SampledInput input = SampledInput::uniform;
  int terms = 2;
  TieRule ties = TieRule::lowest_index;
  StateRule rule = StateRule::residual;
  bool in_place = true;  // the state lies over the first term
};

Selection of_segment(std::size_t size, std::size_t k, SampledInput input) {
  Selection c;
  c.scope = test::model_scope(size);
  c.k = {static_cast<std::uint32_t>(k)};
  c.input = input;
  return c;
}

template <class T>
struct Answer {
  std::vector<Payload<T>> messages;  // [K]
  std::vector<T> state;              // [K,P]
};

// A case's vectors on a device. p = v for one term; else v / 2 in each of two, whatever else is added is 0.
template <class T>
class Placed {
 public:
  Placed(const Selection& c, Device device) : c_(c), P_(c.scope.P), workspace_(device), half_(c.K * P_, device), zero_(c.K * P_, device) {
    std::vector<T> half(c.K * P_, T(1)), zero(c.K * P_, T(0));
    for (std::uint32_t k = 0; k < c.K; ++k)
      for (std::size_t s = 0; s < c.scope.segments.size(); ++s) {
        const Segment& segment = c.scope.segments[s];
        const cuda::Sample sample = cuda::sample_of(segment.size(), c.k[s]);
        for (std::size_t i = 0; i < segment.size(); ++i) {
          const T v = number<T>(c.input, hash64(7 + k, segment.begin + i), i, segment.size(), sample);
          half[k * P_ + segment.begin + i] = c.terms == 1 ? v : v / 2;
        }
      }
    copy(half_, half);
    copy(zero_, zero);
    other_ = Buffer<T>(c.K * P_, device);
    copy(other_, half);
    state_ = Buffer<T>(c.K * P_, device);
    copy(state_, std::vector<T>(c.K * P_, T(-7)));
    for (std::uint32_t k = 0; k < c.K; ++k) turned_.push_back(c.K - 1 - k);
    rows_ = Buffer<std::uint32_t>(c.K, device);
    copy_bytes(rows_.data(), device, turned_.data(), Device::cpu, c.K * sizeof(std::uint32_t));
    fill_workspace();
    exec_.device = device;
    exec_.workspace = &workspace_;
    input_.add(T(1), view(half_));
    if (c.terms > 1) input_.add(T(1), view(other_));
    for (int a = 2; a < c.terms; ++a) input_.add(T(3), view(zero_));
    write_ = {c.rule, view(c.in_place ? half_ : state_)};
  }
  [[nodiscard]] Answer<T> compress() {
    Answer<T> outcome;
    std::vector<Payload<T>> messages(c_.K);
    std::vector<Payload<T>*> out;
    for (Payload<T>& message : messages) {
      message.clear(P_);
      out.push_back(&message);
    }
    if (exec_.device == Device::cpu)
      cpu::top_k_rows<T>(exec_, input_, c_.scope, c_.k, c_.ties, kNativeWire<T>, write_, out);
    else
      cuda::top_k_rows<T>(exec_, input_, c_.scope, c_.k, c_.ties, kNativeWire<T>, write_, out);
    for (const Payload<T>& message : messages) cuda::copy_payload(message, outcome.messages.emplace_back(), nullptr);
    outcome.state = fetch(c_.in_place ? half_.data() : state_.data(), c_.K * P_);
    return outcome;
  }
  // Returns how the segments' entries are chosen on the GPU: [K,S].
  [[nodiscard]] std::vector<Found> found() {
    Workspace::Frame frame(workspace_);
    const cuda::ScopePlan plan = cuda::plan_segments(exec_, c_.scope.segments, frame);
    const Found* found = cuda::choose_candidates<T>(exec_, input_, c_.scope, plan, c_.k, c_.ties, write_, frame).found;
    return found == nullptr ? std::vector<Found>() : fetch(found, c_.K * c_.scope.segments.size());
  }

 private:
  // Scratch memory is not zero when it is taken.
  void fill_workspace() {
    const std::vector<std::uint8_t> ones(c_.K * P_ * sizeof(T) + 1000000, 0xFF);
    Workspace::Frame frame(workspace_);
    copy_bytes(frame.take<std::uint8_t>(ones.size()), half_.device(), ones.data(), Device::cpu, ones.size());
  }
  [[nodiscard]] BatchView<T> view(Buffer<T>& data) { return {data.data(), rows_.data(), c_.K, P_, P_}; }
  void copy(Buffer<T>& to, const std::vector<T>& from) {
    copy_bytes(to.data(), to.device(), from.data(), Device::cpu, from.size() * sizeof(T));
  }
  template <class U>
  [[nodiscard]] std::vector<U> fetch(const U* from, std::size_t count) {
    std::vector<U> values(count);
    copy_bytes(values.data(), Device::cpu, from, exec_.device, count * sizeof(U));
    return values;
  }
  const Selection& c_;
  const std::size_t P_;
  Workspace workspace_;
  Buffer<T> half_, zero_, other_, state_;
  Buffer<std::uint32_t> rows_;
  std::vector<std::uint32_t> turned_;
  Exec exec_;
  Affine<T> input_;
  StateWrite<T> write_;
};

template <class T>
Where where_of(const Selection& c) {
  std::string counts;
  for (const std::uint32_t k : c.k) counts += (counts.empty() ? "" : " ") + std::to_string(k);
  const std::string ties = c.ties == TieRule::all_ties ? "all_ties" : "lowest_index";
  return {.what = "top_k_rows(k = " + counts + ", ties = " + ties + ")",
          .pattern = to_string(c.input),
          .K = c.K,
          .P = c.scope.P,
          .precision = test::kPrecisionName<T>,
          .more = test::segments_text(c.scope) + ", rule " + test::to_string(c.rule) + ", " + std::to_string(c.terms) +
                  (c.terms == 1 ? " term" : " terms") + (c.in_place ? ", in place" : "")};
}

template <class T>
void expect_parity(const Selection& c) {
  const Answer<T> cpu = Placed<T>(c, Device::cpu).compress();
  test::in_each_order(where_of<T>(c), [&](const Where& where) {
    const Answer<T> gpu = Placed<T>(c, Device::cuda).compress();
    EXPECT_TRUE(same_messages(where, cpu.messages, gpu.messages));
    EXPECT_TRUE(same_numbers(where, "state", cpu.state, gpu.state));
  });
}

class GpuTopK : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
};

TEST_F(GpuTopK, IsTheCpusWhateverTheSampleSays) {
  for (const SampledInput input : kSampledInputs)
    for (const TieRule ties : {TieRule::lowest_index, TieRule::all_ties}) {
      if (is_left_out(input)) continue;
      Selection c = of_segment(17003, 170, input);
      c.ties = ties;
      expect_parity<float>(c);
      if (ties == TieRule::lowest_index) expect_parity<double>(c);
    }
}

TEST_F(GpuTopK, IsTheCpusOnSizesAroundTheBoundAndForEveryCount) {
  for (const std::size_t size :
       {cuda::kMostUnlisted - 1, cuda::kMostUnlisted, cuda::kMostUnlisted + 1, std::size_t{20480}, std::size_t{40001}})
    expect_parity<float>(of_segment(size, size / 100, SampledInput::uniform));
  for (const std::size_t k : {0, 1, 2, 33, 2400, 2500, 2501, 20000, 20001})
    for (const SampledInput input : {SampledInput::uniform, SampledInput::ties})
      if (!is_left_out(input)) expect_parity<float>(of_segment(20001, k, input));
}

// Returns small segments, large ones that send nothing or everything, and some whose candidates are found, with gaps between them.
Selection mixed(SampledInput input, std::uint32_t K) {
  Selection c;
  c.K = K;
  c.input = input;
  const auto add = [&c](std::size_t size, std::size_t k) {
    c.scope.segments.push_back({c.scope.P, c.scope.P + size, size, 1});
    c.k.push_back(static_cast<std::uint32_t>(k));
    c.scope.P += size;
  };
  add(5, 2);
  add(17001, 0);
  add(16385, 100);
  c.scope.excluded.push_back({c.scope.P, c.scope.P + 77, 77, 1});
  c.scope.P += 77;
  add(2050, 11);
  add(16999, 16999);
  add(23456, 300);
  add(16400, 16000);
  add(1, 1);
  return c;
}

TEST_F(GpuTopK, IsTheCpusWhereSegmentsAreOfSeveralKinds) {
  for (const SampledInput input : {SampledInput::uniform, SampledInput::few, SampledInput::unseen_only})
    if (!is_left_out(input)) expect_parity<float>(mixed(input, 1));
  expect_parity<double>(mixed(SampledInput::seen_only, 2));
}

TEST_F(GpuTopK, IsTheCpusForEveryStateAndNumberOfTerms) {
  for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent})
    for (const bool in_place : {true, false})
      for (const SampledInput input : {SampledInput::uniform, SampledInput::seen_only, SampledInput::unseen_only}) {
        if (is_left_out(input)) continue;
        Selection c = of_segment(18001, 200, input);
        c.K = 2;
        c.rule = rule;
        c.in_place = in_place;
        if (rule != StateRule::none || in_place) expect_parity<float>(c);
      }
  for (int terms = 1; terms <= 4; ++terms) {
    Selection c = of_segment(16500, 150, SampledInput::uniform);
    c.terms = terms;
    expect_parity<float>(c);
    expect_parity<double>(c);
  }
  Selection c = of_segment(17000, 100, SampledInput::ties);
  c.K = 5;
  expect_parity<float>(c);
}

// Every way that a segment can go is gone.
template <class T>
void expect_ways() {
  const std::vector<std::pair<SampledInput, Way>> expected = {
      {SampledInput::uniform, Way::candidates},  {SampledInput::ties, Way::candidates},      {SampledInput::nan, Way::candidates},
      {SampledInput::rising, Way::candidates},   {SampledInput::alike, Way::candidates},     {SampledInput::few, Way::and_zeros},
      {SampledInput::zeros, Way::and_zeros},     {SampledInput::seen_only, Way::too_few},    {SampledInput::equal, Way::too_many},
      {SampledInput::denormal, Way::candidates}, {SampledInput::unseen_only, Way::too_many}, {SampledInput::some_unseen, Way::too_many}};
  for (const auto& [input, way] : expected) {
    SCOPED_TRACE(to_string(input));
    Selection c = of_segment(50000, 500, input);
    c.K = 2;
    for (const Found& found : Placed<T>(c, Device::cuda).found()) {
      EXPECT_EQ(static_cast<int>(found.way), static_cast<int>(way)) << found.num_candidates << " candidates";
    }
  }
}

TEST_F(GpuTopK, GoesEveryWay) {
  expect_ways<float>();
  expect_ways<double>();
  const std::vector<Found> found = Placed<float>(mixed(SampledInput::uniform, 1), Device::cuda).found();
  std::set<std::size_t> listed;
  for (std::size_t s = 0; s < found.size(); ++s)
    if (found[s].way != Way::not_listed) listed.insert(s);
  EXPECT_EQ(listed, (std::set<std::size_t>{2, 5}));
  EXPECT_TRUE(Placed<float>(of_segment(cuda::kMostUnlisted, 100, SampledInput::uniform), Device::cuda).found().empty());
}

TEST_F(GpuTopK, TakesAFewTimesKCandidates) {
  for (const std::size_t k : {20, 100, 200, 1000, 2000, 12000}) {
    const Selection c = of_segment(100000, k, SampledInput::uniform);
    const Found found = Placed<float>(c, Device::cuda).found().at(0);
    EXPECT_EQ(static_cast<int>(found.way), static_cast<int>(Way::candidates));
    EXPECT_GE(found.num_candidates, k);
    EXPECT_LE(found.num_candidates, 2 * k + 1000) << "of " << k;
  }
}

}  // namespace
}  // namespace fl
