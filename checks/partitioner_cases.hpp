// The cases of the partitioner checks: rows with random labels and a natural partition.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/partitioner.hpp"
#include "fl_core/random/random.hpp"
#include "scenarios/partitioners/split_file.hpp"

namespace fl::checks {

using PartitionerSettings = std::vector<std::pair<std::string, Value>>;

[[nodiscard]] inline std::unique_ptr<Partitioner> make_partitioner(const std::string& name, const PartitionerSettings& settings) {
  Options options = Registry::instance().default_options("partitioner", name);
  Schema schema = options.schema();
  for (const auto& [key, value] : settings) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("no option " + key);
    if (const auto refused = field->assign(value)) throw Error(key + " " + *refused);
  }
  auto partitioner = make_part<Partitioner>("partitioner", name, options, Device::cpu, Precision::float64);
  partitioner->open([](const std::string& path) { return path; });
  return partitioner;
}

// Returns settings that can split small data. Partitioners that leave clients empty by chance get a lower minimum of rows.
[[nodiscard]] inline PartitionerSettings lenient_settings(const std::string& name) {
  if (name == "dirichlet_class") return {{"min_rows", Value{std::int64_t{1}}}, {"beta", Value{5.0}}};
  if (name == "power_law") return {{"min_rows", Value{std::int64_t{1}}}, {"classes", Value{std::int64_t{1}}}};
  return {};
}

// Creates a partitioner with lenient settings for a number of rows and clients. The partitioner that reads a file gets a temporary one,
// which deals rows to clients in turn.
class PreparedPartitioner {
 public:
  PreparedPartitioner(const std::string& name, std::size_t num_rows, std::size_t num_clients) {
    PartitionerSettings settings = lenient_settings(name);
    if (name == "file") {
      write_dealt(num_rows, num_clients);
      settings.emplace_back("path", Value{file_.string()});
    }
    partitioner_ = make_partitioner(name, settings);
  }
  PreparedPartitioner(const PreparedPartitioner&) = delete;
  PreparedPartitioner& operator=(const PreparedPartitioner&) = delete;
  ~PreparedPartitioner() {
    std::error_code ignored;
    if (!file_.empty()) std::filesystem::remove(file_, ignored);
  }
  [[nodiscard]] const Partitioner& operator*() const { return *partitioner_; }

 private:
  void write_dealt(std::size_t num_rows, std::size_t num_clients) {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_split_XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) throw Error("cannot write a split file in " + std::filesystem::temp_directory_path().string());
    ::close(descriptor);
    file_ = name;
    SplitFile split{.num_clients = num_clients};
    for (std::size_t row = 0; row < num_rows; ++row) split.client_of.push_back(static_cast<std::uint32_t>(row % num_clients));
    std::ofstream out(file_);
    write_split(split, out);
  }

  std::filesystem::path file_;
  std::unique_ptr<Partitioner> partitioner_;
};

// m rows with random labels, and a natural partition of growing sizes, whose parts are the groups.
struct Rows {
  Rows(std::size_t m, std::size_t C, std::size_t n) : num_rows(m), num_classes(C) {
    RandomSequence random(m, Purpose::synthetic_data);
    for (std::size_t row = 0; row < m; ++row) label.push_back(static_cast<std::int32_t>(random.below(C)));
    for (std::size_t i = 0; i <= n; ++i) begin.push_back(i * i * m / (n * n) > i ? i * i * m / (n * n) : i);
    begin.back() = m;
    for (std::size_t i = 0; i < n; ++i) group.insert(group.end(), begin[i + 1] - begin[i], static_cast<std::uint32_t>(i));
  }
  [[nodiscard]] PartitionRequest request(std::size_t n, std::uint64_t seed = 1) const {
    return {num_rows, num_classes, label, begin, n, seed, group};
  }
  std::size_t num_rows, num_classes;
  std::vector<std::int32_t> label;
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> group;
};

}  // namespace fl::checks
