// Data for the tests of client models: LIBSVM files read the plain way, small random problems, and blocks of rows.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "clients/model.hpp"
#include "fl_core/random.hpp"
#include "fl_core/registry.hpp"

namespace fl::test {

// One row as text has it: label and (feature, value) pairs, features from 0.
struct PlainRow {
  double label = 0;
  std::vector<std::pair<std::uint32_t, double>> entries;
};

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

template <class U>
void fill(Buffer<U>& buffer, const std::vector<U>& from) {
  buffer.resize_discard(from.size());
  std::copy(from.begin(), from.end(), buffer.begin());
}

enum class Storage { dense, sparse };

// Classes are numbered in ascending order of the labels; targets are the labels themselves.
template <class T>
Dataset<T> make_dataset(const std::vector<PlainRow>& rows, Storage storage, std::size_t features = 0) {
  Dataset<T> data;
  data.name = "test";
  data.num_rows = rows.size();
  for (const auto& row : rows)
    for (const auto& [feature, _] : row.entries) features = std::max<std::size_t>(features, feature + 1);
  data.num_features = features;
  data.is_sparse = storage == Storage::sparse;
  std::vector<double> labels;
  for (const auto& row : rows) labels.push_back(row.label);
  data.target = labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  data.num_classes = labels.size();
  for (const auto& row : rows)
    data.label.push_back(static_cast<std::int32_t>(std::lower_bound(labels.begin(), labels.end(), row.label) - labels.begin()));
  if (storage == Storage::dense) {
    data.allocate_dense();
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (const auto& [feature, value] : rows[r].entries) data.dense_row(r)[feature] = static_cast<T>(value);
    return data;
  }
  std::vector<std::uint64_t> begin{0};
  std::vector<std::uint32_t> column;
  std::vector<T> value;
  bool ones = true;
  for (const auto& row : rows) {
    for (const auto& [feature, v] : row.entries) {
      column.push_back(feature);
      value.push_back(static_cast<T>(v));
      ones = ones && v == 1;
    }
    begin.push_back(column.size());
  }
  fill(data.row_begin, begin);
  fill(data.column, column);
  if (!ones) fill(data.value, value);
  return data;
}

// Rows with about `density` of the features set; labels 0 .. classes-1 that depend on the features.
inline std::vector<PlainRow> random_rows(std::size_t m, std::size_t D, std::size_t classes, double density, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::synthetic_data);
  std::vector<PlainRow> rows(m);
  for (auto& row : rows) {
    double score = 0;
    for (std::uint32_t j = 0; j < D; ++j) {
      if (random.uniform() >= density) continue;
      row.entries.emplace_back(j, random.normal());
      score += row.entries.back().second * (j % 2 == 0 ? 1 : -1);
    }
    const double part = std::clamp(0.5 + 0.2 * (score + random.normal()), 0.0, 0.999);
    row.label = static_cast<double>(static_cast<std::size_t>(part * static_cast<double>(classes)));
  }
  for (std::size_t c = 0; c < classes && c < m; ++c) rows[c].label = static_cast<double>(c);
  return rows;
}

inline std::vector<std::uint32_t> all_rows(std::size_t m) {
  std::vector<std::uint32_t> rows(m);
  std::iota(rows.begin(), rows.end(), 0u);
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

// Makes a model with fields set by name, bound to data.
template <class T>
std::unique_ptr<Model<T>> make_model(const std::string& name, const std::vector<std::pair<std::string, Value>>& fields,
                                     const Dataset<T>& data) {
  Options options = Registry::instance().default_options("model", name);
  Schema schema = options.schema();
  for (const auto& [key, value] : fields) {
    Field* field = schema.find(key);
    if (field == nullptr) throw Error("no option " + key);
    if (const auto refused = field->assign(value)) throw Error(key + " " + *refused);
  }
  auto model = make_part<Model<T>>("model", name, options, Device::cpu, kPrecisionOf<T>);
  model->bind(data);
  return model;
}

}  // namespace fl::test
