// Data for the tests of client models: LIBSVM files read by a simple parser, the small random problems of the checks, and blocks of rows.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "checks/model_cases.hpp"
#include "clients/learning/model.hpp"

namespace fl::test {

using checks::all_rows;
using checks::fill;
using checks::make_dataset;
using checks::make_model;
using checks::PlainRow;
using checks::random_rows;
using Storage = checks::RowStorage;

inline std::vector<PlainRow> read_plain(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<PlainRow> rows;
  for (std::string line; std::getline(in, line);) {
    const char* p = line.c_str();
    char* end = nullptr;
    PlainRow row;
    row.label = std::strtod(p, &end);
    if (end == p) continue;
    for (p = end;; p = end) {
      const unsigned long feature = std::strtoul(p, &end, 10);
      if (end == p) break;
      p = end + 1;
      row.entries.emplace_back(static_cast<std::uint32_t>(feature - 1), std::strtod(p, &end));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// n blocks in the given order, sizes differing by at most one.
inline std::vector<Shard> contiguous_blocks(const std::vector<std::uint32_t>& order, std::size_t n) {
  std::vector<Shard> shards(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = [&](std::size_t block) { return order.begin() + static_cast<std::ptrdiff_t>(block * order.size() / n); };
    shards[i].assign(at(i), at(i + 1));
  }
  return shards;
}

}  // namespace fl::test
