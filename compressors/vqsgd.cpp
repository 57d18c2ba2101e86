// vqSGD with the cross polytope: the segment is replaced by one random vertex +-sqrt(d) e_j |x|, or by the mean of several.
//
//   u = x / |x|_2,   the vertex +-e_j has probability max(+-u_j, 0) / sqrt(d) + (1 - |u|_1 / sqrt(d)) / (2d)
//   C(x) = (1/R) sum_r sqrt(d) |x|_2 v_r,   v_1 .. v_R independent vertices
//
// Unbiased: the uniform part has mean 0. |sqrt(d) |x| v|^2 = d |x|^2, so omega = (d-1) / R for every x, d the size of the largest segment.
// scaled = true divides by 1 + omega: a contraction in expectation with delta = 1 / (1 + omega). Encoding: the drawn vertices as positions
// with multiplicities, and the scale sqrt(d) |x| (over 1 + omega). Published bits: ceil(log2(2d)) for each vertex and 32 per segment.
// Gandikota, Kane, Maity, Mazumdar, "vqSGD: Vector quantized stochastic gradient descent", AISTATS 2021.
// Group: quantiser
#include <algorithm>
#include <cmath>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct VqsgdOptions {
  std::int64_t repetitions = 8;
  bool scaled = false;
};

inline void describe(Schema& s, VqsgdOptions& o) {
  s.field("repetitions", o.repetitions, "R, the vertices drawn for each segment").at_least(1).at_most(1048576);
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct LoadRow {
  Affine<T> input;
  std::size_t k;
  T *p, *counts;
  FL_HD void operator()(std::size_t j) const {
    p[j] = input.at(k, j);
    counts[j] = T(0);
  }
};

// Draws vertices. counts [n]: draws of +e_j minus draws of -e_j; *scale = sqrt(n) |p| factor. prefix [n]: room for sums of magnitudes.
template <class T>
struct DrawVertices {
  const T* p;
  std::size_t n;
  RandomStream stream;
  std::size_t repetitions;
  double factor;
  double* prefix;
  T *counts, *scale;

  FL_HD void operator()(std::size_t) const {
    double sum = 0, squares = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double x = static_cast<double>(p[j]);
      sum += x < 0 ? -x : x;
      squares += x * x;
      prefix[j] = sum;
    }
    const double norm = sqrt(squares), root = sqrt(static_cast<double>(n));
    *scale = usable_scale<T>(norm * root * factor);
    if (*scale == T(0)) return;
    for (std::size_t i = 0; i < repetitions; ++i) draw(i, sum / (norm * root), sum);
  }

 private:
  FL_HD void draw(std::size_t i, double share, double sum) const {
    std::uint32_t word[4];
    stream.quad(static_cast<std::uint32_t>(i), word);
    const double where = (static_cast<double>(word[1]) + static_cast<double>(word[2] >> 11) * 0x1p-21) * 0x1p-32;  // [0, 1), 53 bits
    if (static_cast<double>(word[0]) * 0x1p-32 < share) {
      const std::size_t j = first_above(where * sum);
      counts[j] += p[j] < T(0) ? T(-1) : T(1);
    } else {
      auto vertex = static_cast<std::size_t>(where * 2 * static_cast<double>(n));
      vertex = vertex < 2 * n ? vertex : 2 * n - 1;
      counts[vertex / 2] += vertex % 2 == 0 ? T(1) : T(-1);
    }
  }
  [[nodiscard]] FL_HD std::size_t first_above(double target) const {
    std::size_t low = 0, high = n - 1;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (prefix[middle] > target)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

// One vertex is sent as a sign; several have multiplicities.
struct Multiplicity {
  bool is_sign;
  template <class T>
  FL_HD std::int32_t operator()(T count, T, std::uint32_t, std::size_t) const {
    return is_sign ? (count > T(0) ? 1 : 0) : static_cast<std::int32_t>(count);
  }
};

template <class T>
struct WriteVertexState {
  StateWrite<T> state;  // of one client
  std::size_t begin;
  LevelFormat format;
  Multiplicity level;
  const T *p, *counts, *scale;  // of the segment
  FL_HD void operator()(std::size_t j) const {
    const bool is_sent = counts[j] != T(0);
    const T c = is_sent ? level_value(format, level(counts[j], *scale, 0U, 0), *scale) : T(0);
    state.out.row(0)[begin + j] = state.rule == StateRule::residual ? p[j] - c : is_sent ? T(0) : p[j];
  }
};

template <class T>
class Vqsgd final : public Compressor<T> {
 public:
  explicit Vqsgd(const VqsgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = stated_cost(scope);
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega_of(scope));
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega_of(scope);
    }
    contract.domain.norm = sizeof(T) == sizeof(float) ? MagnitudeRange{(1 + omega_of(scope)) * 1.2e-38} : MagnitudeRange{1e-150, 1e150};
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = scope.segments.size();
    T *p = frame.take<T>(scope.P), *counts = frame.take<T>(scope.P), *scale = frame.take<T>(S);
    auto* prefix = frame.take<double>(largest_segment(scope));
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for_each(exec, scope.P, LoadRow<T>{input, k, p, counts});
      for (std::size_t s = 0; s < S; ++s) {
        const Segment& segment = scope.segments[s];
        const auto layer = static_cast<std::uint32_t>(s);
        const RandomStream stream(context.random_key, context.clients[k], context.round, layer >> 16, layer & 0xFFFF);
        for_each(exec, 1,
                 DrawVertices<T>{p + segment.begin, segment.size(), stream, static_cast<std::size_t>(options_.repetitions), factor(scope),
                                 prefix, counts + segment.begin, scale + s});
      }
      send(exec, scope, p, counts, scale, state.slice(k, 1), messages.subspan(k, 1));
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    double bits = 32.0 * static_cast<double>(message.excluded.size());
    for (const Segment& segment : scope.segments)
      bits += static_cast<double>(options_.repetitions) * std::bit_width(2 * segment.size() - 1) + 32;
    return bits;
  }

 private:
  // The input and zero counts are written, magnitudes are added up in double, and a vertex is found in them by halving.
  [[nodiscard]] EntryCost stated_cost(const Scope& scope) const {
    const double n = static_cast<double>(std::max<std::size_t>(largest_segment(scope), 1));
    const double draws = static_cast<double>(options_.repetitions) / n;
    return costs::copy() + EntryCost{5, 4} + draws * EntryCost{std::log2(n), kRandomOperations + 2 * std::log2(n)};
  }
  [[nodiscard]] double omega_of(const Scope& scope) const {
    return (static_cast<double>(largest_segment(scope)) - 1) / static_cast<double>(options_.repetitions);
  }
  [[nodiscard]] double factor(const Scope& scope) const { return options_.scaled ? 1 / (1 + omega_of(scope)) : 1.0; }

  // Writes one client's message from its counts [P], and its state.
  void send(const Exec& exec, const Scope& scope, const T* p, const T* counts, const T* scale, const StateWrite<T>& state,
            std::span<Payload<T>* const> message) const {
    const Multiplicity level{options_.repetitions == 1};
    const LevelFormat format = level_format();
    Affine<T> drawn;
    drawn.add(T(1), BatchView<const T>{counts, nullptr, 1, scope.P, scope.P});
    select_rows(exec, drawn, scope, AtLeast<T>{T(0.5)}, kNativeWire<T>, StateWrite<T>{}, message);
    encode_kept(exec, scope, format, width_of(options_.repetitions), scale, level, StateWrite<T>{}, message);
    if (state.rule == StateRule::none) return;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t begin = scope.segments[s].begin;
      for_each(exec, scope.segments[s].size(), WriteVertexState<T>{state, begin, format, level, p + begin, counts + begin, scale + s});
    }
  }
  [[nodiscard]] LevelFormat level_format() const {
    if (options_.repetitions == 1) return {.map = LevelMap::sign, .bits = 1};
    return {.map = LevelMap::linear,
            .min_level = -static_cast<std::int32_t>(options_.repetitions),
            .bits = bits_for(2 * static_cast<std::uint64_t>(options_.repetitions) + 1),
            .unit = 1 / static_cast<double>(options_.repetitions)};
  }
  VqsgdOptions options_;
};

FL_REGISTER_PART(Compressor, Vqsgd, VqsgdOptions,
                 (PartInfo{"compressor", "vqsgd", "random vertices of the cross polytope around the segment; unbiased",
                           "Gandikota, Kane, Maity, Mazumdar, vqSGD, AISTATS 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
