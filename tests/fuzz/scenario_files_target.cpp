// The files that a scenario names (samples, traces, splits, initial models) are read, or rejected with ConfigError.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "clients/learning/sample_file.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/partitioners/split_file.hpp"
#include "server/participation.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using fl::fuzz::as_text;
using fl::fuzz::require;

void sample_file(std::span<const std::byte> bytes) {
  const std::vector<fl::Shard> shards = {{0, 2, 4, 6}, {1, 3, 5}, {7}};
  try {
    const fl::SampleFile file("fuzz", as_text(bytes), shards, 3, fl::ShardSizes(shards));
    for (std::uint32_t client = 0; client < shards.size(); ++client) {
      for (const std::uint32_t row : file.rows(client, 1, 0))
        require(std::ranges::find(shards[client], row) != shards[client].end(), "a client was given a row of another");
    }
  } catch (const fl::ConfigError&) {
  }
}

void split_file(std::span<const std::byte> bytes) {
  try {
    const fl::SplitFile split = fl::parse_split(as_text(bytes), "fuzz");
    std::size_t held = 0;
    for (const fl::Shard& shard : fl::shards_of(split)) {
      require(!shard.empty() && std::ranges::is_sorted(shard), "a client has no row, or rows out of order");
      held += shard.size();
    }
    const auto unused = static_cast<std::size_t>(std::ranges::count(split.client_of, fl::kNoClient));
    require(held + unused == split.client_of.size(), "rows were lost");
  } catch (const fl::ConfigError&) {
  }
}

// The path has no extension, so the bytes decide; the first one, whether they are tensors.
void start_file(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const fl::LayerTable layers{.layers = {{.name = "a", .begin = 0, .rows = 2, .cols = 2}, {.name = "b", .begin = 4, .rows = 3}}};
  const bool is_text = (bytes[0] & std::byte{1}) != std::byte{0};
  try {
    const auto x = fl::parse_parameters(as_text(bytes.subspan(1)), is_text ? "fuzz.txt" : "fuzz.safetensors", layers, "start.path");
    require(x.size() == layers.size(), "a model of another size was accepted");
    for (const double value : x) require(std::isfinite(value), "a number that is not finite was accepted");
  } catch (const fl::ConfigError&) {
  }
}

// A trace is read from a file; this one is in memory and has a path all the same.
void trace(std::span<const std::byte> bytes) {
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "no file in memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    const fl::Options options = fl::Registry::instance().default_options("participation", "trace");
    const auto part = fl::make_part<fl::Participation>("participation", "trace", options, fl::Device::cpu, fl::Precision::float64);
    part->open(5, [&path](const std::string&) { return path; });
    const std::vector<double> weights(5, 0.2);
    for (std::uint32_t round = 1; round <= 4; ++round) {
      fl::RoundPlan plan;
      part->sample(round, 0, weights, plan);
      require(std::ranges::is_sorted(plan.cohort) && std::ranges::adjacent_find(plan.cohort) == plan.cohort.end() &&
                  plan.cohort.size() <= part->cohort_size(5) && std::ranges::all_of(plan.cohort, [](auto client) { return client < 5; }),
              "a cohort that cannot be");
    }
  } catch (const fl::ConfigError&) {
  }
  ::close(file);
}

const fl::fuzz::Register kSampleFile("sample_file", sample_file), kSplitFile("split_file", split_file),
    kStartFile("start_file", start_file), kTrace("trace", trace);

}  // namespace
