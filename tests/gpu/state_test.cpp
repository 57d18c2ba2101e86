// Tests client state that is larger than the GPU's memory, and the GPU memory that a run uses. Skipped without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/state/client_state.hpp"
#include "fl_core/state/state_pager.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/same_runs.hpp"
#include "tests/support/every_method.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/sanitized.hpp"
#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/card.hpp"
#endif

namespace fl {
namespace {

namespace fs = std::filesystem;

class GpuState : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    std::string name = (fs::temp_directory_path() / "fedbits_gpu_state_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  [[nodiscard]] StatePaging paging(bool can_be_kept) const {
    return {.memory_bytes = 0, .file = {.folder = folder_, .name = "run", .can_be_kept = can_be_kept}};
  }
  fs::path folder_;
};

// ---- the table ------------------------------------------------------------------------------------------------------------------

constexpr std::size_t kClients = 30, kCohort = 5, kLength = 1003;

using Table = ClientState<float>;

std::unique_ptr<Table> table_of(const StatePaging& paging, std::uint64_t room) {
  auto table = std::make_unique<Table>(kClients, kCohort, kLength, paging, kCohort, Device::managed);
  table->declare({.name = "error", .owner = SlotOwner::client, .double_buffered = true});
  table->declare({.name = "shift", .owner = SlotOwner::client});
  table->bound_memory(room);
  return table;
}

void play(Table& table, const std::vector<std::uint32_t>& cohort, const std::vector<std::uint32_t>& next, std::uint32_t round) {
  table.open_round(cohort, next);
  const auto K = static_cast<std::uint32_t>(cohort.size());
  const BatchView<float> error = table.stored("error", 0, K), fresh = table.shadow("error", 0, K), shift = table.stored("shift", 0, K);
  for (std::uint32_t k = 0; k < K; ++k) {
    for (std::size_t j = 0; j < kLength; ++j) {
      fresh.row(k)[j] = 0.5f * error.row(k)[j] + static_cast<float>(round + cohort[k] + j);
      shift.row(k)[j] += static_cast<float>(round * (k + 1));
    }
    if ((round + cohort[k]) % 5 != 0) table.swap("error", k);
  }
}

// Compares all rows of two tables; an empty one stands for zeros. The second one has the whole state in memory.
void expect_same_tables(const std::string& first, Table& a, Table& b) {
  const test::Where where{
      .what = "client state", .K = kClients, .P = kLength, .precision = "float32", .on_first = first, .on_second = "in memory"};
  for (std::uint32_t client = 0; client < kClients; ++client)
    for (const std::string slot : {"error", "shift"}) {
      const std::span<const float> left = a.peek(slot, client);
      const std::vector<float> copy = left.empty() ? std::vector<float>(kLength) : std::vector<float>(left.begin(), left.end());
      const std::span<const float> right = b.peek(slot, client);
      const std::vector<float> zeros(kLength);
      ASSERT_TRUE(same_words(where, slot + " of client " + std::to_string(client), copy, right.empty() ? std::span(zeros) : right));
    }
}

std::vector<std::uint32_t> draw(std::mt19937& random) {
  std::vector<std::uint32_t> all(kClients), cohort;
  std::iota(all.begin(), all.end(), 0u);
  std::ranges::sample(all, std::back_inserter(cohort), kCohort, random);
  return cohort;
}

TEST_F(GpuState, IsTheSameWherePartOfItIsInAFile) {
  const auto much = table_of(paging(true), kNoBound);
  EXPECT_FALSE(much->reads_ahead());
  auto little = table_of(paging(true), much->least_bytes() + 2 * much->client_bytes());
  EXPECT_TRUE(little->reads_ahead());
  EXPECT_EQ(little->num_frames(), kCohort + 3);
  std::mt19937 random(3);
  std::vector<std::uint32_t> cohort = draw(random);
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const std::vector<std::uint32_t> next = draw(random);
    play(*little, cohort, next, round);
    play(*much, cohort, {}, round);
    cohort = next;
    if (round % 10 == 0) expect_same_tables("in a file in part in round " + std::to_string(round), *little, *much);
  }
  // Checkpoints of them, in tables of their own.
  Archive whole;
  much->persist(whole);
  const auto copy = table_of(paging(false), kNoBound);
  Archive of_whole(whole.bytes());
  copy->persist(of_whole);
  expect_same_tables("in a checkpoint", *copy, *much);
  Archive written;
  little->persist(written);
  little->commit_checkpoint();
  const std::vector<std::byte> bytes = written.bytes();
  little.reset();  // and with it the lock on its file
  const auto again = table_of(paging(false), kNoBound);
  Archive read(bytes);
  again->persist(read);
  expect_same_tables("in a checkpoint with a file", *again, *much);
}

TEST_F(GpuState, ThatNoRoundFitsIntoIsRefused) {
  const std::uint64_t least = table_of(paging(false), kNoBound)->least_bytes();
  EXPECT_NO_THROW((void)table_of(paging(false), least));
  try {
    (void)table_of(paging(false), least - 1);
    FAIL() << "a round has no room";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("out of memory on the GPU"), testing::HasSubstr("--device cpu")));
  }
}

// ---- runs -----------------------------------------------------------------------------------------------------------------------

std::string text_of(const std::string& feedback, int hidden, int rounds) {
  return "name = 'state'\nrounds = " + std::to_string(rounds) +
         "\n[data]\nkind = 'synthetic'\nclients = 60\nfeatures = 200\nclasses = 5\n[partition]\nkind = 'natural'\nclients = 60\n"
         "[model]\nkind = 'mlp'\nhidden = [" +
         std::to_string(hidden) +
         "]\n[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = 0.05\n"
         "[compressor.up]\nkind = 'top_k'\nratio = 0.02\n[feedback.up]\n" +
         feedback + "\n[participation]\nkind = 'uniform'\nclients = 4\n[evaluate]\nevery = 3\ngradient = 'never'\n";
}

RunResult run(const std::string& text, const MachineOptions& machine) { return test::run_text(text, machine).at(0); }

DeviceNeed need_of(const std::string& text, Device device) {
  CellRunner runner(DataCatalog(""), {.threads = 2, .device = device});
  return runner.check(parse_cells(text, "test.toml").at(0)).device;
}

TEST_F(GpuState, OfARunThatHasAShareOfTheGpuIsTheSame) {
  for (const std::string feedback : {"kind = 'ef14'", "kind = 'ef21'"}) {
    const std::string text = text_of(feedback, 30, 5);
    const DeviceNeed need = need_of(text, Device::cuda);
    EXPECT_LT(need.least_state_bytes, need.state_bytes / 4);
    const RunResult expected = run(text, {.threads = 2});
    for (const std::uint64_t room : {need.least_state_bytes, need.state_bytes / 2, need.state_bytes})
      EXPECT_TRUE(test::same_run({.what = "run of feedback " + feedback, .more = std::to_string(room) + " bytes for the state"}, expected,
                                 run(text, {.threads = 2,
                                            .device = Device::cuda,
                                            .trains_on_cpu = true,
                                            .keeps_managed = room == need.least_state_bytes,
                                            .paging = paging(false),
                                            .device_bytes = need.round_bytes + room})));
  }
}

TEST_F(GpuState, NeedsWhatIsPredictedWithoutAGpu) {
  for (const std::string feedback : {"kind = 'ef14'", "kind = 'momentum_correction'"}) {
    const std::string text = text_of(feedback, 100, 3);
    const DeviceNeed predicted = need_of(text, Device::cpu), known = need_of(text, Device::cuda);
    EXPECT_EQ(predicted.data_bytes, known.data_bytes);
    EXPECT_EQ(predicted.state_bytes, known.state_bytes);
    EXPECT_GE(static_cast<double>(predicted.round_bytes), 0.9 * static_cast<double>(known.round_bytes));
    EXPECT_LE(predicted.round_bytes, 2 * known.round_bytes);
  }
}

#if defined(FL_CUDA_EMULATOR)

TEST_F(GpuState, LargerThanTheCardIsTheSame) {
  if (test::kSanitized) GTEST_SKIP() << "the table's test does the same with less";
  const std::string text = text_of("kind = 'ef14'", 100, 6);
  const DeviceNeed need = need_of(text, Device::cuda);
  const RunResult expected = run(text, {.threads = 2});
  (void)cuda::free_bytes_of_device();  // gives back what is kept
  const std::size_t before = emulator::taken_bytes();
  const emulator::Card card((before + need.round_bytes + need.state_bytes / 2) * 33 / 32);
  EXPECT_TRUE(test::same_run({.what = "run with more state than the card has memory"}, expected,
                             run(text, {.threads = 2, .device = Device::cuda, .trains_on_cpu = true, .paging = paging(false)})));
  EXPECT_LE(card.most_taken(), before + need.round_bytes + need.state_bytes / 2);
  EXPECT_GT(card.most_taken(), before + need.state_bytes / 4) << "the state is there";
}

TEST_F(GpuState, ARunTakesNoMoreThanItSays) {
  for (const std::string compressor : {"kind = 'top_k'\nratio = 0.02", "kind = 'identity'"}) {
    std::string text = text_of("kind = 'ef14'", 4, 1);
    const std::string top = "kind = 'top_k'\nratio = 0.02";
    text.replace(text.find(top), top.size(), compressor);
    const DeviceNeed need = need_of(text, Device::cpu);
    (void)cuda::free_bytes_of_device();
    const std::size_t before = emulator::taken_bytes();
    const emulator::Card card(emulator::kMemory);
    EXPECT_EQ(run(text, {.threads = 2, .device = Device::cuda}).record.status, RunStatus::done);
    EXPECT_LE(card.most_taken() - before, need.data_bytes + need.own_bytes()) << compressor;
  }
}

#endif

}  // namespace
}  // namespace fl
