// The cases of the model checks: small random problems, dense and sparse, and the model on them with its own scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "checks/check.hpp"
#include "clients/learning/model.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"

namespace fl::checks {

// One row as in a text file: label and (feature, value) pairs, features from 0.
struct PlainRow {
  double label = 0;
  std::vector<std::pair<std::uint32_t, double>> entries;
};

template <class U>
void fill(Buffer<U>& buffer, const std::vector<U>& from) {
  buffer.resize_discard(from.size());
  std::copy(from.begin(), from.end(), buffer.begin());
}

enum class RowStorage { dense, sparse };

// Stores compressed rows in `data`, without values if all are 1.
template <class T>
void store_sparse(const std::vector<PlainRow>& rows, Dataset<T>& data) {
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
  fill(data.sparse.row_begin, begin);
  fill(data.sparse.column, column);
  if (!ones) fill(data.sparse.value, value);
}

// Returns a dataset of the rows. Classes are numbered in ascending order of the labels; targets are the labels themselves.
template <class T>
Dataset<T> make_dataset(const std::vector<PlainRow>& rows, RowStorage storage, std::size_t features = 0) {
  Dataset<T> data;
  data.name = "test";
  data.num_rows = rows.size();
  for (const auto& row : rows)
    for (const auto& [feature, _] : row.entries) features = std::max<std::size_t>(features, feature + 1);
  data.num_features = features;
  data.is_sparse = storage == RowStorage::sparse;
  std::vector<double> labels;
  for (const auto& row : rows) labels.push_back(row.label);
  data.target = labels;
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  data.num_classes = labels.size();
  for (const auto& row : rows)
    data.label.push_back(static_cast<std::int32_t>(std::lower_bound(labels.begin(), labels.end(), row.label) - labels.begin()));
  if (data.is_sparse) {
    store_sparse(rows, data);
    return data;
  }
  data.allocate_dense();
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const auto& [feature, value] : rows[r].entries) data.dense_row(r)[feature] = static_cast<T>(value);
  return data;
}

// Returns rows with about `density` of the features set and labels 0 .. classes-1 that depend on the features.
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

// Returns rows (A, b, c) of quadratics x^T A x / 2 - <b, x> + c with A = B B^T / d.
inline std::vector<PlainRow> quadratic_rows(std::size_t m, std::size_t d) {
  RandomSequence random(11, Purpose::synthetic_data);
  std::vector<PlainRow> rows(m);
  for (auto& row : rows) {
    std::vector<double> B(d * d), flat(d * d + d + 1);
    for (auto& b : B) b = random.normal();
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j)
        for (std::size_t l = 0; l < d; ++l) flat[i * d + j] += B[i * d + l] * B[j * d + l] / static_cast<double>(d);
    for (std::size_t i = d * d; i < flat.size(); ++i) flat[i] = random.normal();
    for (std::uint32_t i = 0; i < flat.size(); ++i) row.entries.emplace_back(i, flat[i]);
  }
  return rows;
}

inline std::vector<std::uint32_t> all_rows(std::size_t m) {
  std::vector<std::uint32_t> rows(m);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

// Returns a model with options set by name, bound to data.
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
  if (data.vocabulary.size > 0 && !model->traits().takes_tokens) throw ConfigError("it does not take tokens");
  model->bind(data);
  return model;
}

// A model with its options and the data to check it on.
struct ModelCase {
  enum class Data { classes, targets, quadratics, images, tokens, text, ratings, own };
  std::string model, label;
  std::vector<std::pair<std::string, Value>> options = {};
  Data data = Data::classes;
  std::size_t num_classes = 2;
  RowStorage storage = RowStorage::dense;
  RowForm form = {};  // of Data::own
};

inline constexpr std::size_t kModelRows = 37;

// Returns random rows of a form, with classes in turn or random targets.
template <class T>
Dataset<T> own_rows(std::size_t m, const RowForm& form, std::uint64_t seed) {
  Dataset<T> data;
  data.name = kOwnRows;
  data.shape = form.shape;
  data.num_rows = m;
  data.num_features = 1;
  for (const std::size_t size : form.shape) data.num_features *= size;
  data.num_classes = form.num_classes;
  data.allocate_dense();
  RandomSequence random(seed, Purpose::synthetic_data);
  for (std::size_t r = 0; r < m; ++r) {
    T* row = data.dense_row(r);
    for (std::size_t j = 0; j < data.num_features; ++j)
      row[j] = static_cast<T>(form.vocabulary > 0 ? static_cast<double>(random.below(static_cast<std::uint32_t>(form.vocabulary)))
                                                  : random.normal());
    if (form.num_classes > 0) data.label.push_back(static_cast<std::int32_t>(r % form.num_classes));
    data.target.push_back(form.num_classes > 0 ? static_cast<double>(r % form.num_classes) : random.normal());
  }
  return data;
}

// Returns random images {1,28,28} as pixels, with classes in turn.
template <class T>
Dataset<T> image_rows(std::size_t m, std::size_t classes, std::uint64_t seed) {
  Dataset<T> data;
  data.name = "test";
  data.shape = {1, 28, 28};
  data.num_rows = m;
  data.num_features = 28 * 28;
  data.num_classes = classes;
  data.images.pixels.resize_discard(m * data.num_features);
  RandomSequence random(seed, Purpose::synthetic_data);
  for (std::uint8_t& byte : data.images.pixels) byte = static_cast<std::uint8_t>(random.next_bits());
  for (std::size_t r = 0; r < m; ++r) data.label.push_back(static_cast<std::int32_t>(r % classes));
  data.target.assign(data.label.begin(), data.label.end());
  return data;
}

// Returns random sequences of 6 tokens out of 5. The class is the last token of the next row.
template <class T>
Dataset<T> token_rows(std::size_t m, std::uint64_t seed) {
  Dataset<T> data;
  data.name = "test";
  data.num_rows = m;
  data.num_features = 6;
  data.num_classes = data.vocabulary.size = 5;
  data.tokens.resize_discard(m * data.num_features);
  RandomSequence random(seed, Purpose::synthetic_data);
  for (std::int32_t& token : data.tokens) token = static_cast<std::int32_t>(random.below(5));
  for (std::size_t r = 0; r < m; ++r) data.label.push_back(data.tokens[(r + 1) % m * data.num_features]);
  data.target.assign(data.label.begin(), data.label.end());
  return data;
}

// As token_rows(), with a label at every position.
template <class T>
Dataset<T> text_rows(std::size_t m, std::uint64_t seed) {
  Dataset<T> data = token_rows<T>(m, seed);
  data.vocabulary.next_token = NextToken::after_each;
  return data;
}

// Returns ratings from 1 to 5 of 11 items by 4 users, in the order of the users. No user rates more than 9 items.
template <class T>
Dataset<T> rating_rows(std::size_t m, std::uint64_t seed) {
  constexpr std::int32_t kUsers = 4, kItems = 11, kMet = 9;
  Dataset<T> data;
  data.name = "test";
  data.num_rows = m;
  data.num_features = 2;
  data.vocabulary.num_users = kUsers;
  data.vocabulary.size = kUsers + kItems;
  data.tokens.resize_discard(2 * m);
  RandomSequence random(seed, Purpose::synthetic_data);
  for (std::size_t r = 0; r < m; ++r) {
    const auto user = static_cast<std::int32_t>(r * kUsers / m);
    data.tokens[2 * r] = user;
    data.tokens[2 * r + 1] = kUsers + (user + static_cast<std::int32_t>(random.below(kMet))) % kItems;
    data.target.push_back(static_cast<double>(1 + random.below(5)));
  }
  return data;
}

template <class T>
Dataset<T> data_for(const ModelCase& c) {
  if (c.data == ModelCase::Data::own) return own_rows<T>(kModelRows, c.form, 5);
  if (c.data == ModelCase::Data::text) return text_rows<T>(kModelRows, 5);
  if (c.data == ModelCase::Data::ratings) return rating_rows<T>(kModelRows, 5);
  if (c.data == ModelCase::Data::tokens) return token_rows<T>(kModelRows, 5);
  if (c.data == ModelCase::Data::images) return image_rows<T>(kModelRows, 10, 5);
  if (c.data == ModelCase::Data::quadratics) return make_dataset<T>(quadratic_rows(kModelRows, 13), RowStorage::dense);
  Dataset<T> data = make_dataset<T>(random_rows(kModelRows, 21, c.num_classes, 0.6, 5), c.storage);
  if (c.data == ModelCase::Data::targets) data.num_classes = 0;
  return data;
}

// As data_for(), with images expanded for a model that does not take pixels.
template <class T>
Dataset<T> suited_data(const ModelCase& c) {
  Dataset<T> data = data_for<T>(c);
  const Options options = Registry::instance().default_options("model", c.model);
  if (data.has_pixels() && !make_part<Model<T>>("model", c.model, options, Device::cpu, kPrecisionOf<T>)->traits().takes_pixels)
    data.expand_pixels();
  return data;
}

// A model on its data with scratch memory, and random points to evaluate it at.
template <class T>
struct ModelBench {
  explicit ModelBench(const ModelCase& c)
      : data(suited_data<T>(c)), model(make_model<T>(c.model, c.options, data)), P(model->layers().size()) {
    model->set_regulariser(0.3, 0.2);
    exec.workspace = &workspace;
  }
  [[nodiscard]] std::vector<T> point(std::uint64_t seed) const {
    RandomSequence random(seed, Purpose::start);
    std::vector<T> x(P);
    if (model->traits().starts_at_random) {
      model->initial(seed, x.data());
      return x;
    }
    for (auto& v : x) v = static_cast<T>(0.5 * random.normal());
    return x;
  }
  std::vector<T> gradient(const std::vector<T>& x, std::span<const std::uint32_t> rows, double* loss = nullptr) const {
    std::vector<T> g(P);
    model->gradient(exec, shared_view(x.data(), 1, P), {&rows, 1}, {g.data(), nullptr, 1, P, P}, loss);
    return g;
  }
  Dataset<T> data;
  std::unique_ptr<Model<T>> model;
  std::size_t P;
  Workspace workspace;
  Exec exec;
};

}  // namespace fl::checks
