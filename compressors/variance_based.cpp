// Variance-based compression: an entry is sent when its accumulated sum exceeds its noise.
//
//   per client:  r_j += g_j,  v_j += g_j^2;   where r_j^2 > alpha v_j the entry is sent and r_j = v_j = 0;   else v_j <- zeta v_j
//
// g is the operator's input. The paper's v adds the squares of every example's share of the gradient, sum_z (g_j^z / B)^2. An operator sees
// one vector per client and round, so here B = 1: v adds g_j^2, and alpha = 1 requires two rounds that agree in sign. This variance is
// nominal: it is not that of the minibatch. r is a memory of unsent parts, which the method clears without keeping the rounding error: it
// requires feedback "none".
// An entry is sent as a power of two: E = floor(log2 max |r_j|) over the ready entries, 2^e with e the nearest exponent and at most E;
// entries with E - e > 6 are kept as if they were not ready. (The paper has a sign and eight exponents in four bits; the wire's code also
// has a zero, which leaves seven.) Published bits: 32 per entry, 28 for its position and 4 for its value. No class. The operator stores r
// and v. Y. Tsuzuku, H. Imachi, T. Akiba, "Variance-based gradient compression for efficient distributed deep learning", ICLR 2018
// workshop. The rule and its constants follow the survey's description of the paper; its text was not available.
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct VarianceBasedOptions {
  double alpha = 1, zeta = 0.999;
};
inline void describe(Schema& s, VarianceBasedOptions& o) {
  s.field("alpha", o.alpha, "an entry is sent when the square of its accumulated value exceeds alpha times its variance")
      .above(0)
      .at_most(1e6);
  s.field("zeta", o.zeta, "factor by which the variance of an entry that is not sent shrinks in each round").above(0).at_most(1);
}

namespace FL_DEVICE_NS {
namespace {

constexpr int kExponents = 7;  // number of exponents in a message

template <class T>
[[nodiscard]] FL_HD inline bool is_ready(T r, T v, double alpha) {
  const double wide = static_cast<double>(r);
  return wide - wide == 0 && r != T(0) && wide * wide > alpha * static_cast<double>(v);  // inf - inf is NaN
}

// Returns the exponent of the nearest power of two, at most `top`.
template <class T>
[[nodiscard]] FL_HD inline int nearest_exponent(T r, int top) {
  const double magnitude = fabs(static_cast<double>(r));
  const int below = ilogb(magnitude);
  const int nearest = magnitude - ldexp(1.0, below) > ldexp(1.0, below - 1) ? below + 1 : below;
  return nearest < top ? nearest : top;
}

// Computes r += g and v += g^2 of client k [2P], with overflows replaced by the largest number; ready: r if it is ready, else 0.
template <class T>
struct Gather {
  const T* g;
  BatchView<const T> before;
  BatchView<T> after;
  std::size_t k, P;
  double alpha;
  T largest, *ready;
  FL_HD void operator()(std::size_t j) const {
    const T *was = before.row(k), sum = was[j] + g[j], squares = was[P + j] + g[j] * g[j];
    T* is = after.row(k);
    is[j] = sum;
    is[P + j] = largest < squares ? largest : squares;
    ready[j] = is_ready(sum, is[P + j], alpha) ? sum : T(0);
  }
};

// Writes level +-1 .. +-kExponents of entries that are sent and clears their r and v; level 0 for the other entries.
template <class T>
struct TakeReady {
  BatchView<T> memory;
  std::size_t k, P, begin;
  int top;
  T zeta;
  const T* ready;
  T* level;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t j = begin + i;
    T *r = memory.row(k) + j, *v = r + P;
    const int size = ready[j] != T(0) ? kExponents - (top - nearest_exponent(ready[j], top)) : 0;
    if (size < 1) {
      level[j] = T(0);
      *v = zeta * *v;
      return;
    }
    level[j] = static_cast<T>(ready[j] < T(0) ? -size : size);
    *r = *v = T(0);
  }
};

struct LevelAsItIs {
  template <class T>
  FL_HD std::int32_t operator()(T level, T, std::uint32_t, std::size_t) const {
    return static_cast<std::int32_t>(level);
  }
};

template <class T>
struct WriteVarianceState {
  StateWrite<T> state;  // of one client
  std::size_t begin;
  LevelFormat format;
  const T *g, *level;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t j = begin + i;
    const bool is_sent = level[j] != T(0);
    const T sent = is_sent ? level_value(format, static_cast<std::int32_t>(level[j]), T(1)) : T(0);
    state.out.row(0)[j] = !is_sent ? g[j] : state.rule == StateRule::residual ? g[j] - sent : T(0);
  }
};

template <class T>
class VarianceBased final : public Compressor<T> {
 public:
  explicit VarianceBased(const VarianceBasedOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = EntryCost{6, 9} + costs::levels(8, costs::Rounding::nearest, 6) + costs::reading(2) + costs::kept(0);
    contract.no_memory = "it keeps what it did not send in a memory of its own; use feedback \"none\"";
    return contract;
  }
  [[nodiscard]] std::size_t client_state_size(const Scope& scope) const override { return 2 * scope.P; }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override {
    return all_known_but(KnownLevels::Travels::min_exponent, format_of(0));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T *g = frame.take<T>(scope.P), *ready = frame.take<T>(scope.P), *level = frame.take<T>(scope.P);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, g);
      for_each(exec, scope.P,
               Gather<T>{g, context.remembered, context.remember, k, scope.P, options_.alpha, std::numeric_limits<T>::max(), ready});
      const std::vector<double> largest = reduced_on_host(exec, vector_input<T>(ready, scope.P), scope, MagnitudeOf{}, Reduce::max);
      const double all = *std::max_element(largest.begin(), largest.end());
      const int top = all > 0 ? std::ilogb(all) : 0;
      for (const Segment& segment : scope.segments)
        for_each(exec, segment.size(),
                 TakeReady<T>{context.remember, k, scope.P, segment.begin, top, static_cast<T>(options_.zeta), ready, level});
      send(exec, scope, g, level, format_of(top), state.slice(k, 1), messages.subspan(k, 1));
    }
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope&) const override {
    return message.silent ? 0 : 32.0 * static_cast<double>(message.num_sent + message.excluded.size());
  }

 private:
  // Returns the format in which level +-l represents 2^(top - kExponents + l).
  [[nodiscard]] static LevelFormat format_of(int top) {
    LevelFormat format;
    format.map = LevelMap::power_of_two;
    format.bits = bits_for(2 * kExponents + 1);
    format.min_level = -kExponents;
    format.min_exponent = top - kExponents + 1;
    format.has_scale = false;
    return format;
  }

  // Writes one client's message from its levels [P], and its state.
  static void send(const Exec& exec, const Scope& scope, const T* g, const T* level, const LevelFormat& format, const StateWrite<T>& state,
                   std::span<Payload<T>* const> message) {
    select_rows(exec, vector_input(level, scope.P), scope, AtLeast<T>{T(0.5)}, kNativeWire<T>, StateWrite<T>{}, message);
    encode_kept(exec, scope, format, LevelWidth::w8, static_cast<const T*>(nullptr), LevelAsItIs{}, StateWrite<T>{}, message);
    if (state.rule == StateRule::none) return;
    for (const Segment& segment : scope.segments)
      for_each(exec, segment.size(), WriteVarianceState<T>{state, segment.begin, format, g, level});
  }

  VarianceBasedOptions options_;
};

FL_REGISTER_PART(Compressor, VarianceBased, VarianceBasedOptions,
                 (PartInfo{"compressor", "variance_based",
                           "entries whose accumulated value is large relative to their noise; has its own memory",
                           "Tsuzuku, Imachi, Akiba, Variance-based gradient compression, ICLR 2018 workshop"}));
const bool kVarianceBasedDiffers = add_difference({"compressor", "variance_based",
                                                   "the publication takes the variance from every example of a minibatch; here a client's "
                                                   "vector counts as one example (B = 1), which makes the criterion nominal"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
