// Compares runs whose vectors, state and messages are in the GPU's own memory with the same runs in managed memory: the bytes are equal. In
// the emulator, a host that dereferences a pointer into that memory crashes, and a card that cannot share managed memory provides none, so
// a passing test needs neither. Skipped without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "fl_core/config/registry.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "scenarios/file/part_facts.hpp"
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
using test::Method;
using test::Where;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kStays = "stays on the GPU";

// Disables managed memory on the emulated card, and checks that the amount of managed memory does not change.
class NoManagedMemory {
 public:
#if defined(FL_CUDA_EMULATOR)
  NoManagedMemory() { emulator::set_reaches_together(false); }
  ~NoManagedMemory() {
    emulator::set_reaches_together(true);
    EXPECT_EQ(cuda::memory_use().managed_bytes, before_);
  }
#else
  NoManagedMemory() = default;
  ~NoManagedMemory() { EXPECT_EQ(cuda::memory_use().managed_bytes, before_); }
#endif
  NoManagedMemory(const NoManagedMemory&) = delete;
  NoManagedMemory& operator=(const NoManagedMemory&) = delete;

 private:
  std::uint64_t before_ = cuda::memory_use().managed_bytes;
};

std::string data_folder() {
  const char* data = std::getenv("FEDBITS_DATA");
  return data == nullptr ? "" : data;
}

constexpr std::uint64_t kNoStop = ~std::uint64_t{0};

RunResult run_cell(const std::string& text, const MachineOptions& machine, const CheckpointPlan& plan = {}, std::uint64_t stop = kNoStop) {
  CellRunner runner(DataCatalog(data_folder()), machine);
  return runner.run(
      parse_cells(text, "test.toml").at(0), [stop](const RoundRow& row) { return row.round != stop; }, plan);
}
std::vector<std::string> reasons_of(const std::string& text) {
  CellRunner runner(DataCatalog(data_folder()), {.threads = 2, .device = Device::cpu});
  return runner.check(parse_cells(text, "test.toml").at(0)).device.needs_managed;
}

// In the GPU's own memory against managed memory, for blocks of all clients and of `block`.
void expect_same_in_both(const Where& study, const std::string& text, std::uint32_t block = 2) {
  ASSERT_THAT(reasons_of(text), IsEmpty());
  const RunResult expected = run_cell(text, {.threads = 2, .device = Device::cuda, .keeps_managed = true});
  ASSERT_EQ(expected.record.status, RunStatus::done) << expected.record.message;
  for (const std::uint32_t clients : {std::uint32_t{0}, block}) {
    (void)cuda::free_bytes_of_device();  // gives managed chunks back, so that none can be used again
    const NoManagedMemory none;
    const Where where = study.with(clients == 0 ? "one block" : "blocks of " + std::to_string(clients));
    EXPECT_TRUE(same_run(where.between("in managed memory", "in the GPU's own memory"), expected,
                         run_cell(text, {.threads = 2, .block = clients, .device = Device::cuda})));
  }
}

class GpuOwnMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    if (!cuda::shares_managed_memory()) GTEST_SKIP() << "this GPU has no managed memory to compare with";
  }
};

// ---- operators, feedbacks, models ------------------------------------------------------------------------------------------------

struct GridProblem {
  std::string label, data, model;
};
std::vector<GridProblem> grid_problems() {
  return {
      {"logistic_regression",
       "[data]\nkind = 'synthetic'\nclients = 5\nfeatures = 13\nclasses = 4\n[partition]\nkind = 'natural'\nclients = 5\n",
       "kind = 'logistic_regression'\nl2 = 0.01"},
      {"perceptron", "[data]\nname = 'mushrooms'\nrows = 120\n[partition]\nkind = 'shuffled'\nclients = 5\n", "kind = 'mlp'\nhidden = [6]"},
      {"cnn", "[data]\nname = 'fashion-mnist'\nrows = 60\ntest = 'none'\n[partition]\nkind = 'shuffled'\nclients = 5\n",
       "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'conv2d(3, 3)', 'relu', 'flatten', 'dense(classes)']"}};
}

std::string grid_text(const GridProblem& problem, const std::string& feedback, const std::string& operation, const std::string& precision,
                      const std::string& more = "") {
  return "name = 'plain'\nrounds = 4\nprecision = '" + precision + "'\n" + problem.data + "[model]\n" + problem.model +
         "\n[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = 0.05\n[feedback.up]\nkind = '" + feedback + "'\n[compressor.up]\n" +
         operation + "\n" + more + "[evaluate]\nevery = 2\noptimum = false\nupdates_every = 2\n";
}

const std::map<std::string, std::string>& operations() {
  static const std::map<std::string, std::string> all = {{"top_k", "kind = 'top_k'\nratio = 0.1"},
                                                         {"hard_threshold", "kind = 'hard_threshold'\nthreshold = 0.01"},
                                                         {"random_k", "kind = 'random_k'\nratio = 0.2\nscaled = false"},
                                                         {"qsgd", "kind = 'qsgd'\nscaled = true"},
                                                         {"sign", "kind = 'ef_sign'"},
                                                         {"powersgd", "kind = 'powersgd'\nscope = 'tensor'\nrank = 1"},
                                                         {"stc", "kind = 'stc'\nratio = 0.1"},
                                                         {"drive", "kind = 'drive'\nscale = 'min_error'"},
                                                         {"identity", "kind = 'identity'"},
                                                         {"rank_r_svd", "kind = 'rank_r_svd'\nscope = 'tensor'\nrank = 1"}};
  return all;
}

class GpuOwnMemoryGrid : public GpuOwnMemory, public testing::WithParamInterface<std::tuple<std::string, std::string>> {};

TEST_P(GpuOwnMemoryGrid, GivesTheBytesOfManagedMemory) {
  const auto& [feedback, operation] = GetParam();
  if (operation == "powersgd" && feedback == "ef21") GTEST_SKIP() << "ef21 needs each client's own message";
  if (test::kSanitized && operation != "top_k" && operation != "drive") GTEST_SKIP() << "under the sanitizers two operators";
  for (const GridProblem& problem : grid_problems()) {
    if (problem.label == "cnn" && data_folder().empty()) continue;
    for (const std::string precision : {"float32", "float64"}) {
      if (precision == "float64" && problem.label != "logistic_regression") continue;
      expect_same_in_both({.what = problem.label + ", feedback " + feedback + ", operator " + operation, .precision = precision},
                          grid_text(problem, feedback, operations().at(operation), precision));
    }
  }
}

std::vector<std::string> names_of_operations() {
  std::vector<std::string> names;
  for (const auto& [name, _] : operations()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, GpuOwnMemoryGrid,
                         testing::Combine(testing::Values("ef14", "ef21", "none"), testing::ValuesIn(names_of_operations())),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

// ---- what else happens around a round --------------------------------------------------------------------------------------------

TEST_F(GpuOwnMemory, IsEnoughForEverythingAroundARound) {
  const GridProblem perceptron = grid_problems()[1];
  const std::string sampled = "[participation]\nkind = 'uniform'\nclients = 3\n";
  const std::map<std::string, std::string> cases = {
      {"sampled clients", grid_text(perceptron, "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled)},
      {"memory that decays",
       grid_text(perceptron, "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled + "absent = 'decay'\nabsent_decay = 0.5\n")},
      {"memory that is dropped", grid_text(perceptron, "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled + "absent = 'drop'\n")},
      {"memory that the server replaces",
       grid_text(perceptron, "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled + "absent = 'server'\n")},
      {"tensors", grid_text(perceptron, "ef21", "kind = 'top_k'\nratio = 0.1\nscope = 'tensor'", "float64", sampled)},
      {"excluded tensors", grid_text(perceptron, "ef14", "kind = 'qsgd'\nscaled = true\nexclude = ['1.dense.bias']", "float32", sampled)},
      {"excluded tensors beside a code",
       grid_text(perceptron, "ef14", "kind = 'drive'\nscale = 'min_error'\nexclude = ['1.dense.bias']", "float32", sampled)},
      {"a dense start", grid_text(perceptron, "ef21'\ninit = 'dense", "kind = 'sidco'", "float32")},
      {"the bits of published code", grid_text(perceptron, "ef14", "kind = 'three_lc'", "float32", sampled)},
      {"an operator around operators",
       grid_text(perceptron, "none", "kind = 'induced'\nbiased = { kind = 'top_k', ratio = 0.1 }", "float32", sampled)},
      {"plain signs", grid_text(perceptron, "none", "kind = 'sign'", "float32", sampled)},
      {"batch normalisation",
       grid_text({"", grid_problems()[1].data, "kind = 'neural_network'\nlayers = ['dense(7)', 'batch_norm', 'relu', 'dense(classes)']"},
                 "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled)},
      {"a model that trains on the host",
       grid_text({"", "[data]\nkind = 'quadratics'\nclients = 5\ndimension = 13\n[partition]\nkind = 'natural'\nclients = 5\n",
                  "kind = 'quadratic'"},
                 "ef14", "kind = 'top_k'\nratio = 0.1", "float32", sampled)}};
  for (const auto& [label, text] : cases) expect_same_in_both({.what = label}, text);
}

TEST_F(GpuOwnMemory, HoldsARunThatStopsAndGoesOn) {
  std::string name = (fs::temp_directory_path() / "fedbits_gpu_plain_XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  CheckpointPlan plan;
  plan.file = fs::path(name) / "run.checkpoint";
  const std::string sampled = "[participation]\nkind = 'uniform'\nclients = 3\n";
  for (const std::string feedback : {"ef14", "ef21"})
    for (const std::string precision : {"float32", "float64"}) {
      const std::string text = grid_text(grid_problems()[1], feedback, "kind = 'top_k'\nratio = 0.1", precision, sampled);
      const MachineOptions plain{.threads = 2, .block = 2, .device = Device::cuda},
          managed{.threads = 2, .device = Device::cuda, .keeps_managed = true};
      const RunResult straight = run_cell(text, plain);
      // Written there and read there, and the same with managed memory on either side.
      for (const auto& [before, after] : {std::pair{plain, plain}, std::pair{plain, managed}, std::pair{managed, plain}}) {
        EXPECT_EQ(run_cell(text, before, plan, 2).record.status, RunStatus::interrupted);
        CheckpointPlan resumed = plan;
        resumed.resume = true;
        const Where where{
            .what = "run with feedback " + feedback, .precision = precision, .on_first = "without a stop", .on_second = "with a stop"};
        EXPECT_TRUE(same_run(where, straight, run_cell(text, after, resumed)));
        fs::remove(plan.file);
      }
    }
  fs::remove_all(name);
}

// Rows that the GPU has no room for lie in the page file, and checkpoints refer to it.
TEST_F(GpuOwnMemory, PagesStateAndGoesOn) {
  std::string name = (fs::temp_directory_path() / "fedbits_gpu_plain_XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::string text =
      "name = 'paged'\nrounds = 6\n[data]\nkind = 'synthetic'\nclients = 40\nfeatures = 50\nclasses = 5\n[partition]\n"
      "kind = 'natural'\nclients = 40\n[model]\nkind = 'mlp'\nhidden = [20]\n[local]\nkind = 'gradient'\nbatch = 3\n"
      "learning_rate = 0.05\n[compressor.up]\nkind = 'top_k'\nratio = 0.02\n[feedback.up]\nkind = 'ef14'\n"
      "[participation]\nkind = 'uniform'\nclients = 4\n[evaluate]\nevery = 3\ngradient = 'never'\n";
  const MachineOptions whole{.threads = 2, .device = Device::cuda};
  CellRunner runner(DataCatalog(""), whole);
  const DeviceNeed need = runner.check(parse_cells(text, "test.toml").at(0)).device;
  const MachineOptions paged{.threads = 2,
                             .device = Device::cuda,
                             .paging = {.memory_bytes = 0, .file = {.folder = name, .name = "run", .can_be_kept = true}},
                             .device_bytes = need.round_bytes + need.least_state_bytes};
  const RunResult expected = run_cell(text, whole);
  const Where where{.what = "run with state in a page file", .on_first = "in memory", .on_second = "in the file"};
  EXPECT_TRUE(same_run(where, expected, run_cell(text, paged)));
  CheckpointPlan plan;
  plan.file = fs::path(name) / "run.checkpoint";
  EXPECT_EQ(run_cell(text, paged, plan, 3).record.status, RunStatus::interrupted);
  plan.resume = true;
  EXPECT_TRUE(
      same_run(where.with("resumed"), expected, run_cell(text, whole, plan)));  // takes all rows of the page file into the GPU's memory
  fs::remove_all(name);
}

// ---- what parts say -------------------------------------------------------------------------------------------------------------

// The study of every_method.hpp that has a feedback, by its kind.
std::map<std::string, std::vector<Method>> methods_by_feedback() {
  std::map<std::string, std::vector<Method>> found;
  for (const Method& method : test::methods()) {
    const std::size_t begin = method.feedback.find('\'') + 1;
    found[method.feedback.substr(begin, method.feedback.find('\'', begin) - begin)].push_back(method);
  }
  found["ec_gd_star"].push_back(found["ef14"].back());
  return found;
}

// A feedback that says that it stays on the GPU has a study here that takes no managed memory, and its clients send the CPU's bytes.
TEST_F(GpuOwnMemory, IsEnoughForEveryFeedbackThatSaysSo) {
  const std::map<std::string, std::vector<Method>> studies = methods_by_feedback();
  std::set<std::string> shown;
  for (const std::string& kind : Registry::instance().names("feedback")) {
    SCOPED_TRACE(kind);
    const bool stays = on_gpu("feedback", kind) == kStays;
    const auto found = studies.find(kind);
    if (found == studies.end()) {
      EXPECT_FALSE(stays) << "no study shows it";
      continue;
    }
    for (Method method : found->second) {
      if (test::is_of_matrices(method)) continue;
      if (kind == "dasha") method.local = test::kGradient;                          // mvr keeps the tracker on the host
      if (kind == "ef21_normalised") method.feedback = "kind = 'ef21_normalised'";  // without a momentum, as it is asked
      const std::string text = test::text_of(method, "float32");
      const std::vector<std::string> reasons = reasons_of(text);
      EXPECT_TRUE(stays || !reasons.empty()) << method.label;
      if (!reasons.empty()) continue;
      if (test::kSanitized && shown.contains(kind)) continue;
      const RunResult expected = run_cell(text, {.threads = 2, .block = 2});
      (void)cuda::free_bytes_of_device();
      const NoManagedMemory none;
      EXPECT_TRUE(test::same_run({.what = "feedback " + kind + ", method " + method.label, .precision = "float32"}, expected,
                                 run_cell(text, {.threads = 2, .block = 3, .device = Device::cuda, .trains_on_cpu = true})));
      shown.insert(kind);
    }
    EXPECT_EQ(shown.contains(kind), stays);
  }
  EXPECT_GE(shown.size(), 10u);
  for (const std::string kind : {"ef14", "ef21", "none"}) EXPECT_TRUE(shown.contains(kind)) << kind;
}

#if defined(FL_CUDA_EMULATOR)

std::string refusal_of(const std::string& text, const MachineOptions& machine) {
  const NoManagedMemory none;
  try {
    (void)run_cell(text, machine);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

// A card that cannot share managed memory is refused for what needs it, and the words name that.
TEST_F(GpuOwnMemory, IsNotEnoughForWhatTheHostWalks) {
  const MachineOptions gpu{.threads = 2, .device = Device::cuda};
  const GridProblem regression = grid_problems()[0];
  const std::string stays = grid_text(regression, "ef14", "kind = 'top_k'\nratio = 0.1", "float32");
  (void)cuda::free_bytes_of_device();
  EXPECT_EQ(refusal_of(stays, gpu), "");
  EXPECT_THAT(refusal_of(grid_text(regression, "econtrol", "kind = 'top_k'\nratio = 0.1", "float32"), gpu),
              AllOf(HasSubstr("concurrentManagedAccess"), HasSubstr("feedback.up.kind = \"econtrol\": the host computes every new error"),
                    HasSubstr("--device cpu")));
  EXPECT_THAT(refusal_of(grid_text(regression, "ef21'\nmomentum = 0.5\ninit = 'compressed", "kind = 'top_k'\nratio = 0.1", "float32"), gpu),
              HasSubstr("feedback.up.kind = \"ef21\": the host adds every gradient"));
  MachineOptions materialises = gpu;
  materialises.materialise = true;
  EXPECT_THAT(refusal_of(stays, materialises), HasSubstr("--materialise: the host encodes"));
}

#endif

}  // namespace
}  // namespace fl
