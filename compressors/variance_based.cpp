// Variance-based compression: an entry waits until what has gathered in it stands out from its own noise.
//
//   per client:  r_j += g_j,  v_j += g_j^2;   where r_j^2 > alpha v_j the entry is sent and r_j = v_j = 0;   else v_j <- zeta v_j
//
// g is the operator's input. The paper's v adds the squares of every example's share of the gradient, sum_z (g_j^z / B)^2; an operator
// sees one vector per client and round, so here B = 1: v adds g_j^2, and alpha = 1 asks for two rounds that agree in sign. r is a memory of
// what was not sent, which the method clears without keeping the rounding error: use feedback "none"; others are refused.
// An entry is sent as a power of two: E = floor(log2 max |r_j|) over what is ready, 2^e with e the nearest exponent and at most E; entries
// with E - e > 6 wait on as if they were not ready. (The paper has a sign and eight exponents in four bits; the wire's code has a zero too,
// which leaves seven.) Published bits: 32 per entry, 28 for its position and 4 for its value. No class. The operator remembers r and v.
// Y. Tsuzuku, H. Imachi, T. Akiba, "Variance-based gradient compression for efficient distributed deep learning", ICLR 2018 workshop. The
// rule and its constants are from the paper as the survey retells it; its text was not at hand.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verbs.hpp"

namespace fl {

struct VarianceBasedOptions {
  double alpha = 1, zeta = 0.999;
};
inline void describe(Schema& s, VarianceBasedOptions& o) {
  s.field("alpha", o.alpha, "an entry is sent when the square of what gathered in it exceeds alpha times its variance")
      .above(0)
      .at_most(1e6);
  s.field("zeta", o.zeta, "what remains of the variance of an entry that waits, each round").above(0).at_most(1);
}

namespace FL_DEVICE_NS {
namespace {

constexpr int kExponents = 7;  // of the powers of two that are sent

template <class T>
class VarianceBased final : public Compressor<T> {
 public:
  explicit VarianceBased(const VarianceBasedOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.no_memory = "it keeps what it did not send in a memory of its own; use feedback \"none\"";
    return contract;
  }
  [[nodiscard]] std::size_t client_state_size(const Scope& scope) const override { return 2 * scope.P; }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T* g = frame.take<T>(scope.P);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for_each(exec, scope.P, LoadInput<T>{input, k, g});
      T *r = context.remember.row(k), *v = r + scope.P;
      gather(g, context.remembered.row(k), scope.P, r, v);
      send_ready(scope, r, v, *messages[k]);
      write_state(g, scope, *messages[k], state, k);
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope&) const override {
    return message.silent ? 0 : 32.0 * static_cast<double>(message.num_sent + message.excluded.size());
  }

 private:
  // r = r + g, v = v + g^2; the largest number stands for what overflows.
  static void gather(const T* g, const T* before, std::size_t P, T* r, T* v) {
    for (std::size_t j = 0; j < P; ++j) {
      r[j] = before[j] + g[j];
      v[j] = std::min(before[P + j] + g[j] * g[j], std::numeric_limits<T>::max());
    }
  }

  [[nodiscard]] bool is_ready(T r, T v) const {
    const double wide = static_cast<double>(r);
    return std::isfinite(wide) && r != T(0) && wide * wide > options_.alpha * static_cast<double>(v);
  }

  // The exponent of the nearest power of two, at most `top`.
  [[nodiscard]] static int nearest_exponent(T r, int top) {
    const double magnitude = std::fabs(static_cast<double>(r));
    const int below = std::ilogb(magnitude);
    const int nearest = magnitude - std::ldexp(1.0, below) > std::ldexp(1.0, below - 1) ? below + 1 : below;
    return std::min(nearest, top);
  }

  void send_ready(const Scope& scope, T* r, T* v, Payload<T>& message) const {
    double largest = 0;
    for (const Segment& segment : scope.segments)
      for (std::size_t j = segment.begin; j < segment.end; ++j)
        if (is_ready(r[j], v[j])) largest = std::max(largest, std::fabs(static_cast<double>(r[j])));
    const int top = largest > 0 ? std::ilogb(largest) : 0;
    open(message, scope, top);
    std::vector<std::uint32_t> index;
    std::vector<std::int8_t> level;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t first = index.size();
      for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j) {
        const int size = is_ready(r[j], v[j]) ? kExponents - (top - nearest_exponent(r[j], top)) : 0;
        if (size < 1) {
          v[j] = static_cast<T>(options_.zeta) * v[j];
          continue;
        }
        index.push_back(static_cast<std::uint32_t>(j));
        level.push_back(static_cast<std::int8_t>(r[j] < T(0) ? -size : size));
        r[j] = v[j] = T(0);
      }
      message.counts[s] = static_cast<std::uint32_t>(index.size() - first);
    }
    message.num_sent = index.size();
    message.index.resize_discard(index.size());
    message.level_bytes.resize_discard(index.size());
    std::copy(index.begin(), index.end(), message.index.begin());
    std::copy(level.begin(), level.end(), message.template levels<std::int8_t>());
  }

  // Level +-l stands for 2^(top - kExponents + l).
  static void open(Payload<T>& message, const Scope& scope, int top) {
    message.positions = Positions::list;
    message.values = WireValue::levels;
    message.level_width = LevelWidth::w8;
    message.level_format = {};
    message.level_format.map = LevelMap::power_of_two;
    message.level_format.bits = bits_for(2 * kExponents + 1);
    message.level_format.min_level = -kExponents;
    message.level_format.min_exponent = top - kExponents + 1;
    message.level_format.has_scale = false;
    message.counts.resize_discard(scope.segments.size());
  }

  static void write_state(const T* g, const Scope& scope, const Payload<T>& message, const StateWrite<T>& state, std::uint32_t k) {
    if (state.rule == StateRule::none) return;
    T* out = state.out.row(k);
    for (const Segment& segment : scope.segments) std::copy(g + segment.begin, g + segment.end, out + segment.begin);
    for (std::size_t i = 0; i < message.num_sent; ++i) {
      const std::size_t j = message.index[i];
      out[j] = state.rule == StateRule::residual ? g[j] - level_value(message.level_format, message.level(i), T(1)) : T(0);
    }
  }

  VarianceBasedOptions options_;
};

FL_REGISTER_HOST_PART(Compressor, VarianceBased, VarianceBasedOptions,
                      (PartInfo{"compressor", "variance_based",
                                "entries whose gathered value stands out from their noise; has its own memory",
                                "Tsuzuku, Imachi, Akiba, Variance-based gradient compression, ICLR 2018 workshop"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
