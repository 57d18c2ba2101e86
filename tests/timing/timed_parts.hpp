// Parts of the clock that are open for some clients, and temporary files for those that read one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "timing/availability.hpp"
#include "timing/client_facts.hpp"
#include "timing/devices.hpp"
#include "timing/network.hpp"

namespace fl::test {

using PartSettings = std::vector<std::pair<std::string, Value>>;

// Makes a part with these options. Throws ConfigError for values that are refused and for conditions between options.
template <class P>
[[nodiscard]] std::unique_ptr<P> timed_part(const std::string& role, const std::string& kind, const PartSettings& settings) {
  Options options = Registry::instance().default_options(role, kind);
  Schema schema = options.schema();
  for (const auto& [key, value] : settings) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("there is no option " + key);
    if (const auto why = field->assign(value)) throw ConfigError({{key, *why}});
  }
  Problems problems;
  options.validate(problems);
  if (!problems.empty()) throw ConfigError(problems);
  return make_part<P>(role, kind, options, Device::cpu, Precision::float64);
}

template <class P>
[[nodiscard]] std::unique_ptr<P> open_part(const std::string& role, const std::string& kind, const PartSettings& settings,
                                           const ClientFacts& facts) {
  auto part = timed_part<P>(role, kind, settings);
  part->open(facts);
  return part;
}

[[nodiscard]] inline std::unique_ptr<Devices> open_devices(const std::string& kind, const PartSettings& settings,
                                                           const ClientFacts& facts) {
  return open_part<Devices>("devices", kind, settings, facts);
}
[[nodiscard]] inline std::unique_ptr<Network> open_network(const std::string& kind, const PartSettings& settings,
                                                           const ClientFacts& facts) {
  return open_part<Network>("network", kind, settings, facts);
}
[[nodiscard]] inline std::unique_ptr<Availability> open_availability(const std::string& kind, const PartSettings& settings,
                                                                     const ClientFacts& facts) {
  return open_part<Availability>("availability", kind, settings, facts);
}

// Returns the text of the ConfigError that f() throws, "" if it throws none.
template <class F>
[[nodiscard]] std::string refusal(const F& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// A file in the temporary folder, removed at the end.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text) : path_(std::filesystem::path(testing::TempDir()) / name) {
    std::ofstream(path_) << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Returns Spearman's rank correlation of values without ties.
[[nodiscard]] inline double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto ranks = [](const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&values](std::size_t i) { return values[i]; });
    std::vector<double> rank(values.size());
    for (std::size_t r = 0; r < order.size(); ++r) rank[order[r]] = static_cast<double>(r);
    return rank;
  };
  const std::vector<double> a = ranks(x), b = ranks(y);
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const auto N = static_cast<double>(a.size());
  return 1 - 6 * squares / (N * (N * N - 1));
}

// Returns N different numbers of rows in no order.
[[nodiscard]] inline std::vector<std::uint32_t> mixed_rows(std::size_t num_clients) {
  std::vector<std::uint32_t> rows(num_clients);
  for (std::size_t i = 0; i < num_clients; ++i) rows[i] = static_cast<std::uint32_t>(20 + (i * 7919 + 13) % num_clients);
  return rows;
}

}  // namespace fl::test
