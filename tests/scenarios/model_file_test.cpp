// Tests that models written to files and read again have the same numbers, under the names of their layers.
#include "scenarios/experiment/model_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::ScenarioText;
using testing::AllOf;
using testing::HasSubstr;

class ModelFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_model_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] static RunResult run(const std::string& text, const ModelOutput& models = {}, const CheckpointPlan& plan = {},
                                     std::uint64_t stop_after = ~std::uint64_t{0}) {
    CellRunner runner(DataCatalog(""), {.models = models});
    return runner.run(
        parse_cells(text, "test.toml").at(0), [=](const RoundRow& row) { return row.round != stop_after; }, plan);
  }
  // A run of one round that does not move: its row 0 and its checksum are those of the start.
  [[nodiscard]] static RunResult start_at(ScenarioText s, const fs::path& file) {
    s.rounds = 1;
    s.start = "kind = 'file'\npath = '" + file.string() + "'";
    s.local = "kind = 'sgd'\nsteps = 1\nlearning_rate = 1e-300";
    s.evaluate = "every = 1\noptimum = false\ngradient = 'never'";
    return run(s.str());
  }
  [[nodiscard]] static std::string refusal(const ScenarioText& s, const fs::path& file) {
    try {
      (void)start_at(s, file);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  [[nodiscard]] static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

ScenarioText network(const std::string& precision) {
  ScenarioText s = test::mushrooms(4);
  s.rounds = 5;
  s.precision = precision;
  s.model = "kind = 'mlp'\nhidden = [5]";
  s.start = "kind = 'auto'";
  s.local = "kind = 'sgd'\nsteps = 3\nbatch = 16\nlearning_rate = 0.1";
  s.evaluate = "every = 5\noptimum = false";
  return s;
}

// The file read by hand: its header as JSON, its numbers as bytes.
TEST_F(ModelFileTest, TensorsCarryNamesShapesAndTheRun) {
  for (const std::string precision : {"float32", "float64"}) {
    const RunResult result = run(network(precision).str(), {.folder = folder_ / precision});
    const std::string bytes = bytes_of(folder_ / precision / (result.record.run + ".safetensors"));
    ASSERT_GT(bytes.size(), 8u);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    EXPECT_EQ(size % 8, 0u);
    const Json header = Json::parse(bytes.substr(8, size));
    EXPECT_EQ(header["__metadata__"]["run"], result.record.run);
    EXPECT_EQ(header["__metadata__"]["round"], "5");
    EXPECT_EQ(header.size(), 5u) << header.dump();  // two layers of weights and biases
    const std::string numbers = bytes.substr(8 + size);
    EXPECT_EQ(to_hex(hash64_of(std::as_bytes(std::span(numbers)))), result.record.checksum);
    std::size_t entries = 0;
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      EXPECT_EQ(tensor["dtype"], precision == "float32" ? "F32" : "F64");
      std::size_t count = 1;
      for (const std::size_t side : tensor["shape"]) count *= side;
      entries += count;
      EXPECT_EQ(tensor["data_offsets"][1].get<std::size_t>() - tensor["data_offsets"][0].get<std::size_t>(),
                count * (precision == "float32" ? 4 : 8));
    }
    EXPECT_EQ(entries, result.record.parameters);
  }
}

TEST_F(ModelFileTest, ARunStartsWhereAnotherEnded) {
  for (const std::string precision : {"float32", "float64"}) {
    const ScenarioText s = network(precision);
    for (const ModelFormat format : {ModelFormat::safetensors, ModelFormat::npy}) {
      const ModelOutput models{.folder = folder_, .format = format};
      const RunResult result = run(s.str(), models);
      const RunResult again = start_at(s, models.file_of(result.record.run));
      EXPECT_EQ(again.record.checksum, result.record.checksum) << precision << ending_of(format);
      EXPECT_EQ(again.rows[0].train_loss, result.rows.back().train_loss);
    }
  }
}

TEST_F(ModelFileTest, TextIsStillRead) {
  ScenarioText s = test::quadratics();
  std::ofstream out(folder_ / "x.txt");
  for (int j = 0; j < 20; ++j) out << 0.25 * (j + 1) << "\n";
  out.close();
  const RunResult text = start_at(s, folder_ / "x.txt");
  std::vector<double> x;
  for (int j = 0; j < 20; ++j) x.push_back(0.25 * (j + 1));
  EXPECT_EQ(text.record.checksum, to_hex(hash64_of(std::as_bytes(std::span<const double>(x)))));
}

// An interrupted run's checkpoint holds the model that the run has by then.
TEST_F(ModelFileTest, ACheckpointGivesItsModel) {
  CheckpointPlan plan;
  plan.file = folder_ / "run.checkpoint";
  const RunResult half = run(network("float32").str(), {}, plan, 3);
  ASSERT_EQ(half.record.status, RunStatus::interrupted);
  const ModelSnapshot model = model_of_checkpoint(plan.file);
  EXPECT_EQ(model.round, 3u);
  EXPECT_EQ(model.run, half.record.run);
  EXPECT_FALSE(model.is_double);
  EXPECT_EQ(to_hex(hash64_of(model.numbers)), half.record.checksum);
  write_model(model, ModelFormat::safetensors, folder_ / "half.safetensors");
  EXPECT_EQ(start_at(network("float32"), folder_ / "half.safetensors").record.checksum, half.record.checksum);
  std::string damaged = bytes_of(plan.file);
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(folder_ / "bad.checkpoint", std::ios::binary) << damaged;
  EXPECT_THROW((void)model_of_checkpoint(folder_ / "bad.checkpoint"), StoreError);
  EXPECT_THROW((void)model_of_checkpoint(folder_ / "none.checkpoint"), StoreError);
}

// Tensors come by name, wherever they lie in the file.
TEST_F(ModelFileTest, TensorsAreFoundByName) {
  ScenarioText s = network("float32");
  const ModelOutput models{.folder = folder_};
  const RunResult result = run(s.str(), models);
  const std::string bytes = bytes_of(models.file_of(result.record.run));
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  const Json header = Json::parse(bytes.substr(8, size));
  const std::string numbers = bytes.substr(8 + size);
  std::vector<std::string> names;
  for (const auto& [name, _] : header.items())
    if (name != "__metadata__") names.push_back(name);
  const auto write = [&](Json changed, const std::string& data) {
    const std::string text = changed.dump();
    const std::uint64_t length = text.size();
    std::ofstream out(folder_ / "changed.safetensors", std::ios::binary);
    out << std::string(reinterpret_cast<const char*>(&length), 8) << text << data;
  };
  Json turned;  // the last tensor first
  std::string data;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const std::size_t begin = header[*name]["data_offsets"][0], end = header[*name]["data_offsets"][1];
    turned[*name] = header[*name];
    turned[*name]["data_offsets"] = {data.size(), data.size() + end - begin};
    data += numbers.substr(begin, end - begin);
  }
  write(turned, data);
  EXPECT_EQ(start_at(s, folder_ / "changed.safetensors").record.checksum, result.record.checksum);

  Json renamed = turned;
  renamed[names[0] + "x"] = renamed[names[0]];
  renamed.erase(names[0]);
  write(renamed, data);
  EXPECT_THAT(refusal(s, folder_ / "changed.safetensors"), HasSubstr("has no tensor '" + names[0] + "'"));
  Json more = turned;
  more["more"] = more[names[0]];
  write(more, data);
  EXPECT_THAT(refusal(s, folder_ / "changed.safetensors"), HasSubstr("has 5 tensors, the model has 4"));
  Json halves = turned;
  halves[names[0]]["dtype"] = "F16";
  write(halves, data);
  EXPECT_THAT(refusal(s, folder_ / "changed.safetensors"), HasSubstr("F32 and F64 can be read"));
  write(turned, data.substr(0, data.size() - 4));
  EXPECT_THAT(refusal(s, folder_ / "changed.safetensors"), HasSubstr("is damaged"));
  s.model = "kind = 'mlp'\nhidden = [6]";
  write(turned, data);
  EXPECT_THAT(refusal(s, folder_ / "changed.safetensors"), HasSubstr("of shape"));
  EXPECT_THAT(refusal(s, folder_ / "none.safetensors"), HasSubstr("start.path: there is no file '"));
}

// Tensors that share bytes, or leave some out, are damage of the header: the numbers of another tensor were taken without a word.
TEST_F(ModelFileTest, TensorsFollowEachOther) {
  const LayerTable layers{.layers = {{.name = "a", .begin = 0, .rows = 2}, {.name = "b", .begin = 2, .rows = 2}}};
  const auto reason = [&](std::size_t b_begin, std::size_t b_end, std::size_t bytes) {
    Json header;
    header["a"] = {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 8}}};
    header["b"] = {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {b_begin, b_end}}};
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    try {
      (void)parse_parameters(std::string(reinterpret_cast<const char*>(&length), 8) + text + std::string(bytes, '\0'), "m.safetensors",
                             layers, "start.path");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(reason(8, 16, 16), "accepted");
  EXPECT_THAT(reason(0, 8, 16), HasSubstr("is damaged: a tensor begins at byte 0 of the numbers, not at 8"));
  EXPECT_THAT(reason(12, 20, 20), HasSubstr("is damaged: a tensor begins at byte 12 of the numbers, not at 8"));
  EXPECT_THAT(reason(8, 16, 24), HasSubstr("is damaged: it has 24 bytes of numbers, its tensors 16"));
}

TEST_F(ModelFileTest, IsAnOrdinaryFileOfTheSizeOfTheModel) {
  const ScenarioText s = network("float32");
  for (const std::string name : {"x.safetensors", "x.txt"}) {
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
    EXPECT_THAT(refusal(s, folder_ / name), HasSubstr("start.path: cannot read '" + (folder_ / name).string() + "': it is a pipe"));
    fs::remove(folder_ / name);
    std::ofstream(folder_ / name) << "1 2 3";
    fs::resize_file(folder_ / name, std::uintmax_t{1} << 40);
    EXPECT_THAT(refusal(s, folder_ / name), AllOf(HasSubstr("it has 1.0 TiB, and at most 16."), HasSubstr("so this is another model's")));
  }
  EXPECT_THAT(refusal(s, "/dev/zero"), HasSubstr("start.path: cannot read '/dev/zero': it is a device"));
}

}  // namespace
}  // namespace fl
