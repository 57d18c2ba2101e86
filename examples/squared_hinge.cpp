// A client model in one file: a linear classifier under the squared hinge loss, the smooth relative of the support vector machine.
//
//   l(w; a, y) = max(0, 1 - y <w, a>)^2 / 2,   y = -1 for class 0 and +1 for class 1,   w [D]
//   gradient   = -y max(0, 1 - y <w, a>) a
//
// docs/how-to-add-a-model.md walks through this file.
#include <algorithm>
#include <string>
#include <vector>

#include "fedbits/plugin.hpp"

namespace fl {
namespace {

// 1. What a scenario file may say beside the regulariser, which every model has.
struct SquaredHingeOptions {
  double margin = 1;
};
inline void describe(Schema& schema, SquaredHingeOptions& options) {
  schema.field("margin", options.margin, "the distance from the boundary below which a row costs something").above(0);
}

// Calls visit(feature, value) for the entries of a row, however the data is stored.
template <class T, class Visit>
void for_each_entry(const Dataset<T>& data, std::uint32_t row, const Visit& visit) {
  if (!data.is_sparse) {
    const T* a = data.dense_row(row);
    for (std::size_t j = 0; j < data.num_features; ++j) visit(j, static_cast<double>(a[j]));
    return;
  }
  for (std::uint64_t i = data.sparse.row_begin[row]; i < data.sparse.row_begin[row + 1]; ++i)
    visit(std::size_t{data.sparse.column[i]}, data.sparse.value.empty() ? 1.0 : static_cast<double>(data.sparse.value[i]));
}

// 2. The model. Sums over rows are in double: a float result follows the double one closely and does not depend on the block.
template <class T>
class SquaredHinge final : public Model<T> {
 public:
  explicit SquaredHinge(const SquaredHingeOptions& options) : margin_(options.margin) {}

  void bind(const Dataset<T>& data) override {
    if (data.num_classes != 2)
      throw ConfigError("squared_hinge needs two classes, data set \"" + data.name + "\" has " + std::to_string(data.num_classes));
    this->data_ = &data;
  }

  [[nodiscard]] LayerTable layers() const override {
    LayerTable table;
    table.layers.push_back({.name = "weights", .begin = 0, .rows = this->data_->num_features});
    return table;
  }

  // A convex model may start anywhere; zero is the custom.
  void initial(std::uint64_t, T* x) const override { std::fill_n(x, this->data_->num_features, T(0)); }

  // For each client of the block: mean over its rows, plus the regulariser. A client without rows has the regulariser alone.
  void gradient(const Exec&, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override {
    std::vector<double> sum(x.P);
    for (std::size_t k = 0; k < x.K; ++k) {
      std::fill(sum.begin(), sum.end(), 0.0);
      const T* w = x.row(k);
      double total = 0;
      for (const std::uint32_t row : rows[k]) total += add_row(w, row, sum);
      const double scale = rows[k].empty() ? 0 : 1 / static_cast<double>(rows[k].size());
      T* out = gradient.row(k);
      for (std::size_t j = 0; j < x.P; ++j)
        out[j] = static_cast<T>(scale * sum[j] + this->regulariser_.derivative(static_cast<double>(w[j])));
      if (loss != nullptr) loss[k] = scale * total + this->regulariser_.value(w, x.P);
    }
  }

  [[nodiscard]] double loss_sum(const Exec&, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override {
    double sum = 0;
    std::uint64_t right = 0;
    for (const std::uint32_t row : rows) {
      const double score = sign_of(data, row) * product(data, row, x);
      const double missing = std::max(0.0, margin_ - score);
      sum += 0.5 * missing * missing;
      right += score > 0 ? 1 : 0;
    }
    if (correct != nullptr) *correct = right;
    return sum;
  }

  [[nodiscard]] ModelTraits traits() const override { return {.loss_is_convex = true}; }

 private:
  [[nodiscard]] static double sign_of(const Dataset<T>& data, std::uint32_t row) { return data.label[row] == 0 ? -1 : 1; }
  [[nodiscard]] static double product(const Dataset<T>& data, std::uint32_t row, const T* w) {
    double sum = 0;
    for_each_entry(data, row, [&](std::size_t j, double a) { sum += a * static_cast<double>(w[j]); });
    return sum;
  }
  // Adds the gradient of one row to sum [P]; returns its loss.
  double add_row(const T* w, std::uint32_t row, std::vector<double>& sum) const {
    const double y = sign_of(*this->data_, row);
    const double missing = std::max(0.0, margin_ - y * product(*this->data_, row, w));
    if (missing > 0) for_each_entry(*this->data_, row, [&](std::size_t j, double a) { sum[j] -= y * missing * a; });
    return 0.5 * missing * missing;
  }

  double margin_;
};

// 3. The name in scenario files, a summary and a source for `fedbits list`.
FL_REGISTER_PART(Model, SquaredHinge, SquaredHingeOptions,
                 (PartInfo{"model", "squared_hinge", "linear classifier, squared hinge loss; two classes, convex", ""}));

}  // namespace
}  // namespace fl
