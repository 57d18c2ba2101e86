// The common part of all models with margins z = W a + b: Model and SecondOrder in terms of a link (links.hpp).
//
// A derived class `Self` has   std::size_t check(const Dataset<T>&)   which refuses unfit data and returns the number of outputs O, and
// auto with_link(const Dataset<T>&, f)   which calls f with the link for that data's labels.
//
// Layers: "weight" (O x D; D x 1 for a single output), then "bias" [O] if the model has one. Parameters start at zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "clients/kernels/gram.hpp"
#include "clients/kernels/gram_extremes.hpp"
#include "clients/kernels/row_passes.hpp"
#include "clients/kernels/shard_layouts.hpp"
#include "clients/learning/loss_with_gradient.hpp"
#include "clients/learning/model.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::kernels {

// Calls visit(j, slope of the regulariser at x[j]) for every parameter.
template <class X, class Visit>
[[gnu::always_inline]] inline void map_slopes(const Regulariser& regulariser, const X* x, std::size_t P, const Visit& visit) {
  if (regulariser.nonconvex == 0)
    for (std::size_t j = 0; j < P; ++j) visit(j, regulariser.l2 * static_cast<double>(x[j]));
  else
    for (std::size_t j = 0; j < P; ++j) visit(j, regulariser.derivative(static_cast<double>(x[j])));
}

// The functions of SecondOrder, other than derivatives, that the search for a minimum calls on a linear model.
template <class Model>
class LinearCurvature : public SecondOrder {
 public:
  void bound_diagonal(const Exec& exec, RowSet set, std::span<double> bound) const final { model().bound_diagonal_of(exec, set, bound); }
  [[nodiscard]] double relative_change(const Exec& exec, const double* x, RowSet set) const final {
    return model().relative_change_of(exec, x, set);
  }
  bool centre(std::span<double> v) const final { return model().centre_classes(v); }

 private:
  [[nodiscard]] const Model& model() const { return static_cast<const Model&>(*this); }
};

template <class T, class Self>
class LinearModel : public Model<T>, public LinearCurvature<LinearModel<T, Self>>, public LossWithGradient<T>, public ShardLayouts<T> {
 public:
  explicit LinearModel(bool bias) { shape_.bias = bias; }

  void bind(const Dataset<T>& data) override {
    if (data.num_rows == 0 || data.num_features == 0) throw ConfigError("data set \"" + data.name + "\" has no rows or no features");
    if (!data.images.augment.is_none())
      throw key_error("data.augment", "a linear model takes images as they are, without random changes; a neural network can change them");
    shape_.O = static_cast<Self&>(*this).check(data);
    shape_.D = data.num_features;
    this->data_ = &data;
    this->cost_ = cost_of_linear_model<T>(shape_, data.is_sparse, Self::kLinkOperations);
  }
  [[nodiscard]] LayerTable layers() const override {
    LayerTable table;
    table.layers.push_back({"weight", 0, shape_.O == 1 ? shape_.D : shape_.O, shape_.O == 1 ? 1 : shape_.D});
    if (shape_.bias) table.layers.push_back({"bias", shape_.weights(), shape_.O, 1});
    return table;
  }
  void initial(std::uint64_t, T* x) const override { std::fill_n(x, shape_.size(), T{}); }
  [[nodiscard]] const SecondOrder* second_order() const override { return this; }
  [[nodiscard]] ModelTraits traits() const override { return {.takes_pixels = true, .loss_is_convex = true}; }

  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override {
    with_rows([&](const auto& source, const auto& link) {
      Workspace::Frame frame(*exec.workspace);
      const Room room = room_for(frame, source);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const std::span<const std::uint32_t> after = k + 1 < rows.size() ? rows[k + 1] : std::span<const std::uint32_t>{};
        const double sum = one_gradient(exec, source, link, x.row(k), {rows[k], after, loss != nullptr}, room, gradient.row(k));
        if (loss != nullptr) loss[k] = sum * share_of(rows[k]) + this->regulariser_.value(x.row(k), shape_.size());
      }
    });
  }
  double gradient_with_loss_sum(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, T* gradient) const override {
    return with_rows([&](const auto& source, const auto& link) {
      Workspace::Frame frame(*exec.workspace);
      return one_gradient(exec, source, link, x, {rows, {}, true}, room_for(frame, source), gradient);
    });
  }
  [[nodiscard]] double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override {
    if (data.num_features != shape_.D)
      throw ConfigError("data set \"" + data.name + "\" has " + std::to_string(data.num_features) + " features, the model has " +
                        std::to_string(shape_.D));
    if (correct != nullptr) *correct = 0;
    return self().with_link(data, [&](const auto& link) {
      if (&data == this->data_ && correct == nullptr)
        if (const ShardLayout<T>* layout = this->layout_of(data, rows))
          return add_shard_gradient(exec, *layout, link, x, 1.0, nullptr, true);
      return with_source(data, [&](const auto& source) {
        Workspace::Frame frame(*exec.workspace);
        return sum_losses(source, shape_, link, x, RowSet{rows}, block(frame, source), correct);
      });
    });
  }

  double evaluate(const Exec& exec, const double* x, RowSet set, double* gradient) const override {
    if (gradient != nullptr) std::fill_n(gradient, shape_.size(), 0.0);
    return with_rows([&](const auto& source, const auto& link) {
      Workspace::Frame frame(*exec.workspace);
      return add_gradient(source, shape_, link, x, set, 1.0, gradient, block(frame, source), true);
    });
  }
  void hessian_times(const Exec& exec, const double* x, RowSet set, const double* v, double* out) const override {
    std::fill_n(out, shape_.size(), 0.0);
    with_rows([&](const auto& source, const auto& link) {
      Workspace::Frame frame(*exec.workspace);
      add_hessian_times(source, shape_, link, x, set, v, out, block(frame, source), block(frame, source));
    });
  }
  void add_hessian(const Exec& exec, const double* x, RowSet set, double* H) const override;
  [[nodiscard]] SecondOrder::Curvature curvature(RowSet set) const override;

 protected:
  [[nodiscard]] const LinearShape& shape() const { return shape_; }

 private:
  friend LinearCurvature<LinearModel<T, Self>>;
  // See LinearCurvature, which calls them.
  void bound_diagonal_of(const Exec& exec, RowSet set, std::span<double> bound) const;
  [[nodiscard]] double relative_change_of(const Exec& exec, const double* x, RowSet set) const;
  bool centre_classes(std::span<double> v) const;

  [[nodiscard]] const Self& self() const { return static_cast<const Self&>(*this); }
  template <class F>
  static auto with_source(const Dataset<T>& data, const F& f) {
    if (data.has_pixels()) return f(PixelRows<T>(data));
    return data.is_sparse ? f(SparseRows<T>(data)) : f(DenseRows<T>(data));
  }
  template <class F>
  auto with_rows(const F& f) const {
    return self().with_link(
        *this->data_, [&](const auto& link) { return with_source(*this->data_, [&](const auto& source) { return f(source, link); }); });
  }
  template <class Source>
  [[nodiscard]] double* block(Workspace::Frame& frame, const Source&) const {
    return frame.take<double>(block_size<Source>(shape_));
  }
  // The rows of a gradient, and those that are read after them.
  struct GradientRows {
    std::span<const std::uint32_t> rows, after;
    bool with_losses;
  };
  // Scratch memory of gradients: a block of margins, and sums [P] in double unless the gradient itself is in double.
  struct Room {
    double *z, *sums;
  };
  template <class Source>
  [[nodiscard]] Room room_for(Workspace::Frame& frame, const Source& source) const {
    double* z = block(frame, source);
    return {z, sizeof(T) == sizeof(double) ? nullptr : frame.take<double>(shape_.size())};
  }
  // Returns 1 / n for n rows, and 0 for none.
  [[nodiscard]] static double share_of(std::span<const std::uint32_t> rows) {
    return rows.empty() ? 0.0 : 1.0 / static_cast<double>(rows.size());
  }
  // Computes out [P] at x. Returns the sum of the losses if they are wanted, else 0.
  template <class Source, class Link>
  double one_gradient(const Exec& exec, const Source& source, const Link& link, const T* x, const GradientRows& of, const Room& room,
                      T* out) const;
  // Computes the same as add_gradient() of row_passes.hpp over the rows of a layout.
  template <class Link>
  double add_shard_gradient(const Exec& exec, const ShardLayout<T>& layout, const Link& link, const T* x, double scale, double* acc,
                            bool losses) const {
    Workspace::Frame frame(*exec.workspace);
    return ShardPass<T>(frame, layout, *this->data_, shape_, x).add_gradient(link, scale, acc, losses);
  }
  LinearShape shape_;
};

// Adds up the slopes of all rows before it divides the sum by the number of rows. Sums of integers are exact, so that entries of the
// gradient that are equal by definition have the same bits. Division by a power of two is exact, so slopes are then divided first, which
// saves a pass over the parameters.
template <class T, class Self>
template <class Source, class Link>
double LinearModel<T, Self>::one_gradient(const Exec& exec, const Source& source, const Link& link, const T* x, const GradientRows& of,
                                          const Room& room, T* out) const {
  double* acc = room.sums;
  if constexpr (sizeof(T) == sizeof(double)) acc = out;
  const Regulariser reg = this->regulariser_;
  const std::size_t P = shape_.size();
  const double over_n = share_of(of.rows);
  const bool is_exact = std::has_single_bit(of.rows.size());
  if (is_exact)
    map_slopes(reg, x, P, [=](std::size_t j, double slope) { acc[j] = slope; });
  else
    std::fill_n(acc, P, 0.0);
  const double scale = is_exact ? over_n : 1.0;
  const ShardLayout<T>* layout = this->layout_of(*this->data_, of.rows);
  const double total = layout != nullptr
                           ? add_shard_gradient(exec, *layout, link, x, scale, acc, of.with_losses)
                           : add_gradient(source, shape_, link, x, RowSet{of.rows}, scale, acc, room.z, of.with_losses, of.after);
  if (!is_exact)
    map_slopes(reg, x, P, [=](std::size_t j, double slope) { out[j] = static_cast<T>(acc[j] * over_n + slope); });
  else if constexpr (sizeof(T) != sizeof(double))
    for (std::size_t j = 0; j < P; ++j) out[j] = static_cast<T>(acc[j]);
  return total;
}

template <class T, class Self>
void LinearModel<T, Self>::add_hessian(const Exec& exec, const double* x, RowSet set, double* H) const {
  const std::size_t n = shape_.D + 1, P = shape_.size(), O = shape_.O;
  std::vector<double> G(O * (O + 1) / 2 * n * n, 0.0);
  with_rows([&](const auto& source, const auto& link) {
    using Source = std::remove_cvref_t<decltype(source)>;
    constexpr int stride = kStride<Source>;
    Workspace::Frame frame(*exec.workspace);
    double* z = block(frame, source);
    double* B = frame.template take<double>(static_cast<std::size_t>(Source::kRowsPerBlock) * n);
    double* w = frame.template take<double>(Source::kRowsPerBlock);
    for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& rows, const double* weight) {
      check_for_stop();
      row_block_margins<false>(source, shape_, x, rows, z);
      link.normalise(rows.count, stride, z, nullptr);
      expand_rows(source, shape_, rows.rows, static_cast<std::size_t>(rows.count), B);
      double* pair = G.data();
      for (std::size_t a = 0; a < O; ++a) {
        for (std::size_t b = 0; b <= a; ++b, pair += n * n) {
          for (int r = 0; r < rows.count; ++r) w[r] = (weight == nullptr ? 1.0 : weight[r]) * link.curvature(a, b, r, stride, z);
          add_gram(B, w, static_cast<std::size_t>(rows.count), n, pair);
        }
      }
    });
  });
  // Returns the parameter of output a and feature i; the bias is feature D.
  const auto place = [&](std::size_t a, std::size_t i) { return i < shape_.D ? a * shape_.D + i : shape_.weights() + a; };
  const std::size_t used = shape_.bias ? n : shape_.D;
  const double* pair = G.data();
  for (std::size_t a = 0; a < O; ++a)
    for (std::size_t b = 0; b <= a; ++b, pair += n * n)
      for (std::size_t i = 0; i < used; ++i)
        for (std::size_t j = 0; j < used; ++j) {
          const double g = pair[std::max(i, j) * n + std::min(i, j)];
          H[place(a, i) * P + place(b, j)] += g;
          if (a != b) H[place(b, j) * P + place(a, i)] += g;
        }
}

template <class T, class Self>
SecondOrder::Curvature LinearModel<T, Self>::curvature(RowSet set) const {
  return with_rows([&](const auto& source, const auto& link) {
    using Link = std::remove_cvref_t<decltype(link)>;
    const Extremes gram = gram_extremes(source, shape_, set);
    return SecondOrder::Curvature{Link::kLeastCurvature * std::max(0.0, gram.least), Link::kCurvatureBound * gram.largest};
  });
}

// The bound on the loss' second derivative times the weighted squares of each column.
template <class T, class Self>
void LinearModel<T, Self>::bound_diagonal_of(const Exec& exec, RowSet set, std::span<double> bound) const {
  const std::size_t n = shape_.D + 1;
  std::vector<double> squares(n, 0.0);
  double most = 0;
  with_rows([&](const auto& source, const auto& link) {
    using Source = std::remove_cvref_t<decltype(source)>;
    most = std::remove_cvref_t<decltype(link)>::kCurvatureBound;
    Workspace::Frame frame(*exec.workspace);
    double* B = frame.template take<double>(static_cast<std::size_t>(Source::kRowsPerBlock) * n);
    for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& rows, const double* weight) {
      const auto count = static_cast<std::size_t>(rows.count);
      expand_rows(source, shape_, rows.rows, count, B);
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t j = 0; j < n; ++j) squares[j] += (weight == nullptr ? 1.0 : weight[r]) * B[r * n + j] * B[r * n + j];
    });
  });
  for (std::size_t p = 0; p < bound.size(); ++p) bound[p] = most * squares[p < shape_.weights() ? p % shape_.D : shape_.D];
}

// Several outputs are classes, and a number that is added to the margins of all classes changes no probability.
template <class T, class Self>
bool LinearModel<T, Self>::centre_classes(std::span<double> v) const {
  if (shape_.O == 1) return false;
  const auto centre_column = [&](std::size_t first, std::size_t stride) {
    double mean = 0;
    for (std::size_t o = 0; o < shape_.O; ++o) mean += v[first + o * stride] / static_cast<double>(shape_.O);
    for (std::size_t o = 0; o < shape_.O; ++o) v[first + o * stride] -= mean;
  };
  for (std::size_t j = 0; j < shape_.D; ++j) centre_column(j, shape_.D);
  if (shape_.bias) centre_column(shape_.weights(), 1);
  return true;
}

// Let r be the largest spread of v's margins over the rows. The Hessian changes by the factor exp(r) at most, and one row's share of
// |v|_H^2 is at least weight * least_curvature * spread^2.
template <class T, class Self>
double LinearModel<T, Self>::relative_change_of(const Exec& exec, const double* x, RowSet set) const {
  return with_rows([&](const auto& source, const auto& link) {
    using Source = std::remove_cvref_t<decltype(source)>;
    if constexpr (std::remove_cvref_t<decltype(link)>::kIsQuadratic) return 0.0;
    constexpr int stride = kStride<Source>;
    Workspace::Frame frame(*exec.workspace);
    double* z = block(frame, source);
    double least = std::numeric_limits<double>::infinity();
    for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& rows, const double* weight) {
      row_block_margins<false>(source, shape_, x, rows, z);
      link.normalise(rows.count, stride, z, nullptr);
      for (int r = 0; r < rows.count; ++r)
        least = std::min(least, (weight == nullptr ? 1.0 : weight[r]) * link.least_curvature(r, stride, z));
    });
    return 1 / std::sqrt(least);
  });
}

}  // namespace fl::kernels
