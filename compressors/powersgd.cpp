// PowerSGD: every matrix M [n,m] is sent as two thin factors, found by one step of power iteration that all clients share.
//
//   phase 0:  P_i = M_i Q              everyone: P^ = orthonormal columns of mean P_i
//   phase 1:  Q_i = M_i^T P^           everyone: Q  = mean Q_i,   estimate = P^ Q^T = mean of C(M_i),   C(M_i) = P^ Q_i^T
//
// C is linear given the shared P^, so factors may be averaged. State: e_i = M_i - P^ Q_i^T, the error of the client's own message.
// Q starts each round from the mean of the previous round (warm start) or from new random numbers. A column that became zero keeps its old
// direction, because otherwise it would stay zero. It has no uniform class: C projects on P^, so only |C(x) - x| <= |x| holds.
// Tensors without a matrix shape are sent uncompressed at the end of phase 1, so that both phases are plain vectors. Published bits: 32 r
// (n + m) per matrix and 32 per other value.
// Shared state: Q of all matrices, [cols, r] each, then P^ of all, [rows, r] each; r = min(rank, n, m).
// Vogels, Karimireddy, Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed optimization", NeurIPS 2019.
// Group: low rank
#include <algorithm>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/cpu/linalg.hpp"
#include "fl_core/ops/cpu/low_rank.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct PowerSgdOptions {
  std::int64_t rank = 2;
  bool warm_start = true;
};

inline void describe(Schema& s, PowerSgdOptions& o) {
  s.field("rank", o.rank, "columns of the factors").at_least(1).at_most(1024);
  s.field("warm_start", o.warm_start, "start the power iteration from the factor of the round before");
}

namespace FL_DEVICE_NS {
namespace {

constexpr std::uint32_t kNoClient = 0xFFFFFFFFu;

// Writes entry i of a start factor: uniform in [-1, 1), the same on every device.
template <class T>
struct StartEntry {
  RandomStream stream;
  T* Q;
  FL_HD void operator()(std::size_t i) const { Q[i] = 2 * stream.uniform<T>(i) - 1; }
};

// Loads a tensor of client k from the flat input.
template <class T>
struct LoadTensor {
  Affine<T> input;
  std::size_t k, begin;
  T* M;
  FL_HD void operator()(std::size_t j) const { M[j] = input.at(k, begin + j); }
};

// Clears the state of entries that were sent uncompressed.
template <class T>
struct ClearState {
  BatchView<T> state;
  std::size_t k, begin;
  FL_HD void operator()(std::size_t j) const { state.row(k)[begin + j] = T(0); }
};

template <class T>
class PowerSgd final : public Compressor<T>, public Phases<T> {
 public:
  explicit PowerSgd(const PowerSgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = EntryCost{2, 0} + 3.0 * costs::thin_product(static_cast<double>(options_.rank));
    contract.linear = true;
    return contract;
  }

  [[nodiscard]] Scope adapt(Scope scope) const override {
    std::vector<Segment> matrices;
    for (const Segment& segment : scope.segments) (is_matrix(segment) ? matrices : scope.excluded).push_back(segment);
    scope.segments = std::move(matrices);
    std::sort(scope.excluded.begin(), scope.excluded.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
    return scope;
  }

  void check(const Scope& scope) const override {
    if (scope.segments.empty() || !std::all_of(scope.segments.begin(), scope.segments.end(), is_matrix))
      throw ConfigError("powersgd compresses matrices and finds none; use scope = \"tensor\" and a model with matrix-shaped layers");
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    for (std::size_t k = 0; k < messages.size(); ++k) {
      Payload<T>& message = *messages[k];
      message.place_on(kThisDevice);
      message.positions = Positions::all;
      message.values = kNativeWire<T>;
      message.num_sent = length(context.phase, scope);
      message.value.resize_discard(message.num_sent);
      if (context.phase == 0)
        send_left_factors(exec, context, input, k, scope, message.value.data());
      else
        send_right_factors(exec, context, input, k, scope, state, message.value.data());
    }
  }

  [[nodiscard]] const Phases<T>* phases() const override { return this; }
  [[nodiscard]] int count() const override { return 2; }

  [[nodiscard]] std::size_t length(int phase, const Scope& scope) const override {
    return phase == 0 ? num_left(scope) : num_right(scope) + num_excluded(scope);
  }

  [[nodiscard]] std::size_t state_size(const Scope& scope) const override { return num_left(scope) + num_right(scope); }

  void init_state(std::uint64_t random_key, const Scope& scope, T* shared) const override {
    const std::size_t size = num_right(scope);
    const StartEntry<T> entry{RandomStream(random_key, kNoClient, 0), shared};
    for (std::size_t i = 0; i < size; ++i) entry(i);
    std::fill_n(shared + size, num_left(scope), T(0));
  }

  // This function runs on the host in every build.
  void absorb(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const override {
    Workspace workspace;
    Exec host;
    host.workspace = &workspace;
    T *Q = shared, *P = shared + num_right(scope);
    const T* part = mean.data();
    for (const Segment& m : scope.segments) {
      const std::size_t r = rank_of(m);
      if (phase == 0) {
        std::copy_n(part, m.rows * r, P);
        cpu::orthogonalize(host, P, m.rows, r);
      } else {
        cpu::low_rank_product(host, m, P, part, r, estimate + m.begin);
        move_factor(part, m.cols, r, Q);
      }
      part += (phase == 0 ? m.rows : m.cols) * r;
      Q += m.cols * r;
      P += m.rows * r;
    }
    if (phase == 0) return;
    for (const Segment& tensor : scope.excluded) {
      std::copy_n(part, tensor.size(), estimate + tensor.begin);
      part += tensor.size();
    }
  }

 private:
  [[nodiscard]] static bool is_matrix(const Segment& segment) { return segment.rows > 1 && segment.cols > 1; }
  [[nodiscard]] std::size_t rank_of(const Segment& m) const { return std::min({static_cast<std::size_t>(options_.rank), m.rows, m.cols}); }

  // Return the number of elements of the factors P^ and Q of all matrices.
  [[nodiscard]] std::size_t num_left(const Scope& scope) const {
    std::size_t total = 0;
    for (const Segment& m : scope.segments) total += m.rows * rank_of(m);
    return total;
  }
  [[nodiscard]] std::size_t num_right(const Scope& scope) const {
    std::size_t total = 0;
    for (const Segment& m : scope.segments) total += m.cols * rank_of(m);
    return total;
  }

  // Computes P_i = M_i Q.
  void send_left_factors(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, std::size_t k, const Scope& scope,
                         T* out) const {
    Workspace::Frame frame(*exec.workspace);
    const T* Q = context.shared;
    if (!options_.warm_start) {
      T* fresh = frame.take<T>(num_right(scope));
      for_each(exec, num_right(scope), StartEntry<T>{RandomStream(context.random_key, kNoClient, context.round), fresh});
      Q = fresh;
    }
    for (const Segment& m : scope.segments) {
      const std::size_t r = rank_of(m);
      affine_times(exec, input, k, m, Q, r, out);
      Q += m.cols * r;
      out += m.rows * r;
    }
  }

  // Computes Q_i = M_i^T P^, appends the uncompressed tensors, and writes the state.
  void send_right_factors(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, std::size_t k, const Scope& scope,
                          const StateWrite<T>& state, T* out) const {
    const T* P = context.shared + num_right(scope);
    for (const Segment& m : scope.segments) {
      const std::size_t r = rank_of(m);
      affine_transposed_times(exec, input, k, m, P, r, state, out);
      P += m.rows * r;
      out += m.cols * r;
    }
    for (const Segment& tensor : scope.excluded) {
      for_each(exec, tensor.size(), LoadTensor<T>{input, k, tensor.begin, out});
      if (state.rule != StateRule::none) for_each(exec, tensor.size(), ClearState<T>{state.out, k, tensor.begin});
      out += tensor.size();
    }
  }

  // Sets Q [cols, r] to the mean, except for columns that are zero.
  static void move_factor(const T* mean, std::size_t cols, std::size_t r, T* Q) {
    for (std::size_t c = 0; c < r; ++c) {
      bool is_zero = true;
      for (std::size_t i = 0; i < cols; ++i) is_zero = is_zero && mean[i * r + c] == T(0);
      for (std::size_t i = 0; i < cols && !is_zero; ++i) Q[i * r + c] = mean[i * r + c];
    }
  }

  PowerSgdOptions options_;
};

FL_REGISTER_PART(Compressor, PowerSgd, PowerSgdOptions,
                 (PartInfo{"compressor", "powersgd", "low-rank factors of matrices by one shared step of power iteration",
                           "Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
