// Norm clipping: v <- min(1, limit / |v|) v, with the Euclidean norm or the largest magnitude.
//
//   side = "client"   v_i of each client of the cohort, [P]       side = "server"   the estimate [P]
//
// Norms are sums in double, in the order of fl_core/ops/cpu/reduce.hpp on every device (server: fl_core/ops/norms.hpp). Each entry is
// multiplied in double and rounded once. If squares overflow or vanish in double, the norm is that of the vector times a power of two.
// Source: M. Abadi, A. Chu, I. Goodfellow, H. B. McMahan, I. Mironov, K. Talwar, L. Zhang, "Deep learning with differential privacy", CCS
// 2016, for the gradients of single rows; H. B. McMahan, D. Ramage, K. Talwar, L. Zhang, "Learning differentially private recurrent
// language models", ICLR 2018, for clients' updates. pfl-research has it under the same name. It adds no noise, so it gives no privacy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/ops/norms.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct NormClippingOptions {
  enum class Side { client, server };
  double limit = 1.0;
  VectorBound::Norm norm = VectorBound::Norm::l2;
  Side side = Side::client;
};
inline void describe(Schema& s, NormClippingOptions& o) {
  using Norm = VectorBound::Norm;
  using Side = NormClippingOptions::Side;
  s.field("limit", o.limit, "the largest norm, in the unit of the vector: longer vectors are scaled down to it").above(0);
  s.choice("norm", o.norm, {{Norm::l2, "l2"}, {Norm::infinity, "infinity"}}, "the Euclidean norm, or the largest magnitude of an entry");
  s.choice("side", o.side, {{Side::client, "client"}, {Side::server, "server"}},
           "what is clipped: each client's vector before the feedback, or the server's estimate before its step");
}

namespace FL_DEVICE_NS {
namespace {

// The factors of a vector that is scaled by first * second; the first is a power of two.
struct ClipFactors {
  double first = 1, second = 1;
  [[nodiscard]] FL_HD bool changes() const { return first != 1 || second != 1; }
};

// Returns a power of two that brings a number of this magnitude, which is above 0, close to 1.
inline double clip_scale(double largest) { return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000)); }

// Returns whether a sum of squares lost nothing to overflow or underflow. NaN did.
inline bool is_whole_sum(double sum) { return sum >= 1e-280 && sum <= std::numeric_limits<double>::max(); }

// Returns the factors for a vector with this norm after multiplication by `scale`: 1 if it is short enough or not finite.
inline ClipFactors clip_factors(double norm, double scale, double limit) {
  if (!std::isfinite(norm) || norm <= limit * scale) return {};
  return {scale, limit / norm};
}

// Returns the factors for a vector whose entries have this largest magnitude.
inline ClipFactors clip_factors_of_largest(double largest, double limit) {
  if (!std::isfinite(largest) || largest <= limit) return {};
  const double scale = clip_scale(largest);
  return clip_factors(largest * scale, scale, limit);
}

template <class T>
struct ScaledSquareOf {
  double scale;
  [[nodiscard]] FL_HD double operator()(T p) const {
    const double x = static_cast<double>(p) * scale;
    return x * x;
  }
};

template <class T>
[[nodiscard]] FL_HD inline T clipped_entry(T p, ClipFactors by) {
  return static_cast<T>((static_cast<double>(p) * by.first) * by.second);
}

// Scales one row on the CPU.
template <class T>
struct ClipRow {
  T* row;
  ClipFactors by;
  FL_HD void operator()(std::size_t j) const { row[j] = clipped_entry(row[j], by); }
};

// Scales all rows on a GPU: i = k * P + j.
template <class T>
struct ClipRows {
  BatchView<T> rows;
  const ClipFactors* by;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / rows.P, j = i - k * rows.P;
    if (by[k].changes()) rows.row(k)[j] = clipped_entry(rows.row(k)[j], by[k]);
  }
};

template <class T>
class NormClipping final : public Postprocessor<T> {
 public:
  explicit NormClipping(const NormClippingOptions& options) : options_(options) {}

  [[nodiscard]] PostprocessorPlan plan() const override {
    const bool clips_vectors = clips(NormClippingOptions::Side::client);
    return {.changes_vectors = clips_vectors,
            .changes_estimate = clips(NormClippingOptions::Side::server),
            .one_vector = clips_vectors,
            .bound = VectorBound{options_.norm, options_.limit},
            // The norm, and the factor of a vector that is too long.
            .client_cost = clips_vectors ? EntryCost{3, 3} : EntryCost{},
            .server_cost = clips_vectors ? EntryCost{} : EntryCost{4, 4}};
  }

  void on_client(const Exec& exec, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t vector) const override {
    if (!clips(NormClippingOptions::Side::client)) return;
    const BatchView<T>& rows = block.vectors[vector];
    const std::vector<ClipFactors> factors = factors_of(exec, rows);
    if (std::ranges::all_of(factors, [](const ClipFactors& by) { return !by.changes(); })) return;
    if constexpr (kThisDevice == Device::cpu) {
      for (std::uint32_t k = 0; k < rows.K; ++k)
        if (factors[k].changes()) for_each(exec, rows.P, ClipRow<T>{rows.row(k), factors[k]});
    } else {
      Workspace::Frame frame(*exec.workspace);
      auto* there = frame.take<ClipFactors>(factors.size());
      ::fl::upload_bytes(there, factors.data(), factors.size() * sizeof(ClipFactors), exec.stream);
      for_each(exec, std::size_t{rows.K} * rows.P, ClipRows<T>{rows, there});
    }
  }

  void on_server(const ServerRound<T>&, std::span<double> estimate) const override {
    const ClipFactors by = clips(NormClippingOptions::Side::server) ? estimate_factors(estimate) : ClipFactors{};
    if (!by.changes()) return;
    for (double& e : estimate) e = clipped_entry(e, by);
  }

 private:
  [[nodiscard]] bool clips(NormClippingOptions::Side side) const { return options_.side == side; }

  [[nodiscard]] ClipFactors estimate_factors(std::span<const double> estimate) const {
    if (!is_finite(estimate.data(), estimate.size())) return {};
    double largest = 0;
    for (const double e : estimate) largest = std::max(largest, std::abs(e));
    if (options_.norm == VectorBound::Norm::infinity) return clip_factors_of_largest(largest, options_.limit);
    const double sum = sum_of_squares(estimate.data(), estimate.size());
    if (is_whole_sum(sum) || !(largest > 0)) return clip_factors(std::sqrt(sum), 1, options_.limit);
    const double scale = clip_scale(largest);
    return clip_factors(std::sqrt(sum_of_squares(estimate.data(), estimate.size(), scale)), scale, options_.limit);
  }

  // Returns the factors of each row [K].
  [[nodiscard]] std::vector<ClipFactors> factors_of(const Exec& exec, const BatchView<T>& rows) const {
    const bool is_l2 = options_.norm == VectorBound::Norm::l2;
    const Affine<T> input = Affine<T>().add(T(1), rows);
    const std::vector<double> sizes =
        is_l2 ? reduced(exec, input, SquareOf{}, Reduce::sum) : reduced(exec, input, MagnitudeOf{}, Reduce::max);
    std::vector<ClipFactors> factors(rows.K);
    for (std::uint32_t k = 0; k < rows.K; ++k) {
      if (!is_l2)
        factors[k] = clip_factors_of_largest(sizes[k], options_.limit);
      else if (is_whole_sum(sizes[k]))
        factors[k] = clip_factors(std::sqrt(sizes[k]), 1, options_.limit);
      else
        factors[k] = factors_at_extremes(exec, input.slice(k, 1));
    }
    return factors;
  }

  // Returns the factors of a row whose squares overflow or vanish.
  [[nodiscard]] ClipFactors factors_at_extremes(const Exec& exec, const Affine<T>& row) const {
    const double largest = reduced(exec, row, MagnitudeOf{}, Reduce::max)[0];
    if (!(largest > 0)) return {};
    const double scale = clip_scale(largest);
    return clip_factors(std::sqrt(reduced(exec, row, ScaledSquareOf<T>{scale}, Reduce::sum)[0]), scale, options_.limit);
  }

  // Returns one number for each row of the input, in host memory.
  template <class Map>
  [[nodiscard]] std::vector<double> reduced(const Exec& exec, const Affine<T>& input, Map map, Reduce reduce) const {
    Scope whole;
    whole.P = input.size();
    whole.segments.push_back({.begin = 0, .end = input.size(), .rows = input.size()});
    std::vector<double> here(input.clients());
    if constexpr (kThisDevice == Device::cpu) {
      reduce_rows(exec, input, whole, map, reduce, here.data());
    } else {
      Workspace::Frame frame(*exec.workspace);
      auto* there = frame.take<double>(here.size());
      reduce_rows(exec, input, whole, map, reduce, there);
      ::fl::copy_bytes(here.data(), Device::cpu, there, kThisDevice, here.size() * sizeof(double), exec.stream);
    }
    return here;
  }

  NormClippingOptions options_;
};

FL_REGISTER_PART(Postprocessor, NormClipping, NormClippingOptions,
                 (PartInfo{"postprocessor", "norm_clipping", "scales vectors that are longer than a limit down to it",
                           "Abadi et al., CCS 2016; McMahan, Ramage, Talwar, Zhang, ICLR 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
