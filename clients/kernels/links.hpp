// The loss of a linear model as a function of its margins z = W a + b [O]: the loss per row, its derivative and its curvature.
//
//   LogisticLink  O = 1  l = log(1 + exp(-y z)), y = -1 for class 0 and +1 for class 1      l' = -y / (1 + exp(y z))
//   SoftmaxLink   O = C  l = log sum_c exp(z_c) - z_label                                   dl/dz_c = p_c - [c = label]
//   SquaredLink   O = 1  l = (z - target)^2 / 2                                             l' = z - target
//
// A block of margins is z [O,stride] with row r of the block in column r; stride is a multiple of kLanes. Columns from `count` to
// padded(count) are computed but never used. `loss` [stride] receives each row's loss when it is not null.
// kCurvatureBound and kLeastCurvature bound the eigenvalues of the second derivative over all z.
// curvature(a, b, r, ...) is d2l/(dz_a dz_b) of column r, from a block that normalise() has processed. least_curvature(r, ...) of such a
// block is a c with u^T (d2l/dz2) u >= c (max_o u_o - min_o u_o)^2 for every u [O] (c u^2 if O = 1). The third derivative of the logistic
// and of the softmax loss along v is at most (max_o v_o - min_o v_o) times the second one (F. Bach, "Self-concordant analysis for logistic
// regression", Electronic J. of Statistics 4, 2010); kIsQuadratic says that there is none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "clients/kernels/vector_math.hpp"

namespace fl::kernels {

class LogisticLink {
 public:
  static constexpr double kCurvatureBound = 0.25;  // l'' <= 1/4
  static constexpr double kLeastCurvature = 0.0;
  static constexpr bool kIsQuadratic = false;
  explicit LogisticLink(const std::int32_t* label) : label_(label) {}

  // Replaces z by dl/dz.
  void derivative(const std::uint32_t* rows, int count, int, double* z, double* loss) const {
    alignas(64) double sign[kMostRows];
    for (int r = 0; r < count; ++r) sign[r] = static_cast<double>(2 * label_[rows[r]] - 1);
    for (int r = count; r < padded(count); ++r) sign[r] = 1;
    for (int r = 0; r < count; r += kLanes) {
      const VecD y = load(sign + r);
      const VecD m = y * load(z + r);
      const VecD t = exp(-absolute(m));
      const VecD over = 1.0 / (1.0 + t);
      store(z + r, -y * (m < VecD{} ? over : t * over));
      if (loss != nullptr) store(loss + r, log1p_unit(t) + (m < VecD{} ? -m : VecD{}));
    }
  }
  // Replaces direction by (d2l/dz2) direction.
  static void curvature_times(int count, int, const double* z, double* direction) {
    for (int r = 0; r < count; r += kLanes) {
      const VecD t = exp(-absolute(load(z + r)));
      store(direction + r, load(direction + r) * (t / ((1.0 + t) * (1.0 + t))));
    }
  }
  static void normalise(int, int, double*, double*) {}
  [[nodiscard]] static double curvature(std::size_t, std::size_t, int r, int, const double* z) {
    const double t = std::exp(-std::abs(z[r]));
    return t / ((1 + t) * (1 + t));
  }
  [[nodiscard]] static double least_curvature(int r, int stride, const double* z) { return curvature(0, 0, r, stride, z); }
  [[nodiscard]] bool is_right(std::uint32_t row, int r, int, const double* z) const { return (z[r] > 0) == (label_[row] == 1); }

  static constexpr int kMostRows = 64;

 private:
  const std::int32_t* label_;
};

class SoftmaxLink {
 public:
  static constexpr double kCurvatureBound = 0.5;  // diag(p) - p p^T has no eigenvalue above 1/2
  static constexpr double kLeastCurvature = 0.0;
  static constexpr bool kIsQuadratic = false;
  SoftmaxLink(const std::int32_t* label, std::size_t classes) : label_(label), classes_(classes) {}

  void derivative(const std::uint32_t* rows, int count, int stride, double* z, double* loss) const {
    if (loss != nullptr)
      for (int r = 0; r < count; ++r) loss[r] = -at(z, stride, rows[r], r);
    normalise(count, stride, z, loss);
    for (int r = 0; r < count; ++r) at(z, stride, rows[r], r) -= 1;
  }
  // Replaces the direction u by p_c (u_c - sum_b p_b u_b).
  void curvature_times(int count, int stride, double* z, double* direction) const {
    normalise(count, stride, z, nullptr);
    for (int r = 0; r < count; r += kLanes) {
      VecD mean{};
      for (std::size_t c = 0; c < classes_; ++c) mean += load(lane(z, stride, c, r)) * load(lane(direction, stride, c, r));
      for (std::size_t c = 0; c < classes_; ++c) {
        double* u = lane(direction, stride, c, r);
        store(u, load(lane(z, stride, c, r)) * (load(u) - mean));
      }
    }
  }
  // Returns p_a ([a = b] - p_b) from margins that normalise() has turned into probabilities.
  [[nodiscard]] static double curvature(std::size_t a, std::size_t b, int r, int stride, const double* p) {
    const double p_a = p[a * static_cast<std::size_t>(stride) + static_cast<std::size_t>(r)];
    return p_a * ((a == b ? 1.0 : 0.0) - p[b * static_cast<std::size_t>(stride) + static_cast<std::size_t>(r)]);
  }
  // The variance of u is at least that of its largest and smallest entry alone, which is smallest for the two least likely classes.
  [[nodiscard]] double least_curvature(int r, int stride, const double* p) const {
    double least = 1, second = 1;
    for (std::size_t c = 0; c < classes_; ++c) {
      const double own = p[c * static_cast<std::size_t>(stride) + static_cast<std::size_t>(r)];
      second = std::min(second, std::max(least, own));
      least = std::min(least, own);
    }
    return least > 0 ? least * second / (least + second) : 0;
  }
  // Turns margins into probabilities; adds log sum_c exp(z_c) to loss.
  void normalise(int count, int stride, double* z, double* loss) const {
    for (int r = 0; r < count; r += kLanes) {
      VecD largest = load(z + r);
      for (std::size_t c = 1; c < classes_; ++c) {
        const VecD v = load(lane(z, stride, c, r));
        largest = v > largest ? v : largest;
      }
      VecD total{};
      for (std::size_t c = 0; c < classes_; ++c) {
        const VecD e = exp(load(lane(z, stride, c, r)) - largest);
        store(lane(z, stride, c, r), e);
        total += e;
      }
      const VecD over = 1.0 / total;
      for (std::size_t c = 0; c < classes_; ++c) store(lane(z, stride, c, r), load(lane(z, stride, c, r)) * over);
      if (loss != nullptr)
        for (int i = 0; i < kLanes; ++i) loss[r + i] += largest[i] + std::log(total[i]);
    }
  }
  // Returns whether the first of the largest margins is the label's.
  [[nodiscard]] bool is_right(std::uint32_t row, int r, int stride, const double* z) const {
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes_; ++c)
      if (*lane(z, stride, c, r) > *lane(z, stride, best, r)) best = c;
    return static_cast<std::int32_t>(best) == label_[row];
  }

 private:
  template <class D>
  [[nodiscard]] static D* lane(D* z, int stride, std::size_t c, int r) {
    return z + c * static_cast<std::size_t>(stride) + static_cast<std::size_t>(r);
  }
  [[nodiscard]] double& at(double* z, int stride, std::uint32_t row, int r) const {
    return *lane(z, stride, static_cast<std::size_t>(label_[row]), r);
  }
  const std::int32_t* label_;
  std::size_t classes_;
};

class SquaredLink {
 public:
  static constexpr double kCurvatureBound = 1.0;
  static constexpr double kLeastCurvature = 1.0;
  static constexpr bool kIsQuadratic = true;
  explicit SquaredLink(const double* target) : target_(target) {}

  void derivative(const std::uint32_t* rows, int count, int, double* z, double* loss) const {
    for (int r = 0; r < count; ++r) z[r] -= target_[rows[r]];
    if (loss != nullptr)
      for (int r = 0; r < count; ++r) loss[r] = 0.5 * z[r] * z[r];
  }
  static void curvature_times(int, int, const double*, double*) {}
  static void normalise(int, int, double*, double*) {}
  [[nodiscard]] static double curvature(std::size_t, std::size_t, int, int, const double*) { return 1; }
  [[nodiscard]] static double least_curvature(int, int, const double*) { return 1; }
  [[nodiscard]] static bool is_right(std::uint32_t, int, int, const double*) { return false; }

 private:
  const double* target_;
};

}  // namespace fl::kernels
