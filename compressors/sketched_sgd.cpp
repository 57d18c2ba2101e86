// Sketched SGD: the heavy entries of the mean are found in a count sketch that may be added up, then their exact values are asked for.
//
//   phase 0:  S_i[r, h_r(j)] += sgn_r(j) p_ij          everyone: S = mean S_i,  e_j = median_r sgn_r(j) S[r, h_r(j)],  H = the k largest
//   |e_j| phase 1:  v_i = p_i on H                           everyone: estimate = mean v_i on H, 0 elsewhere;          C(p_i) = p_i on H
//
// Both messages are plain vectors that add up: rows * columns numbers, then k. C is linear given the shared H, and the memory of error
// feedback keeps p_i off H. h_r and sgn_r are fixed random functions of the position, drawn with the run's compressor seed. With columns of
// the order of k the sketch finds entries whose square is a k-th part of |mean p|^2 with high probability, and then C is about as good as
// Top-k of the mean; no class holds for every input. The paper asks for P k candidates and keeps k of their means; a client's memory would
// have to wait for that choice, so here all that were asked for are kept: k stands for its P k.
// Tensors that are excluded travel uncompressed in phase 1. k and ratio count over all compressed entries, whatever the scope.
// Shared state: four numbers of the hash functions' key, and the positions H as two 16-bit halves each.
// Published bits: 32 rows columns + 32 k. N. Ivkin, D. Rothchild, E. Ullah, V. Braverman, I. Stoica, R. Arora, "Communication-efficient
// distributed SGD with sketching", NeurIPS 2019; D. Rothchild et al., "FetchSGD", ICML 2020 (whose memory is itself a sketch: not this
// one).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/sparsity.hpp"
#include "fl_core/cpu/tile.hpp"
#include "fl_core/payload_segments.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verbs.hpp"

namespace fl {

struct SketchedSgdOptions {
  Sparsity kept;
  std::int64_t rows = 5, columns = 1000;
};
inline void describe(Schema& s, SketchedSgdOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("rows", o.rows, "hash functions of the sketch; the median of as many estimates is taken").at_least(1).at_most(101);
  s.field("columns", o.columns, "counters of each hash function").at_least(1).at_most(1 << 28);
}
inline void validate(const SketchedSgdOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

constexpr std::uint32_t kEveryone = 0xFFFFFFFFu;

// h_r(j) and sgn_r(j), from one random word.
struct Hash {
  std::size_t column;
  double sign;
};
Hash hash_of(std::uint64_t key, std::size_t row, std::size_t j, std::size_t columns) {
  const std::uint32_t word = RandomStream(key, kEveryone, 0, 0, static_cast<std::uint32_t>(row)).bits(j);
  return {static_cast<std::size_t>(static_cast<std::uint64_t>(word >> 1) * columns >> 31), (word & 1) != 0 ? 1.0 : -1.0};
}

// 16 bits of an unsigned number in each element, which every floating point format holds exactly.
template <class T>
void pack(std::uint64_t number, int parts, T* to) {
  for (int i = 0; i < parts; ++i) to[i] = static_cast<T>(number >> (16 * i) & 0xFFFF);
}
template <class T>
std::uint64_t unpack(int parts, const T* from) {
  std::uint64_t number = 0;
  for (int i = 0; i < parts; ++i) number |= static_cast<std::uint64_t>(from[i]) << (16 * i);
  return number;
}

template <class T>
class SketchedSgd final : public Compressor<T> {
 public:
  explicit SketchedSgd(const SketchedSgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.linear = true;
    return contract;
  }
  void check(const Scope& scope) const override {
    const std::size_t d = num_compressed(scope);
    if (options_.kept.k > 0 && static_cast<std::size_t>(options_.kept.k) > d)
      throw ConfigError("sketched_sgd: k = " + std::to_string(options_.kept.k) + " is more than the " + std::to_string(d) +
                        " parameters that are compressed; lower k or give a ratio instead");
  }

  [[nodiscard]] int num_phases() const override { return 2; }
  [[nodiscard]] std::size_t message_length(int phase, const Scope& scope) const override {
    return phase == 0 ? rows() * columns() : heavy(scope) + num_excluded(scope);
  }
  [[nodiscard]] std::size_t cohort_state_size(const Scope& scope) const override { return kKeyParts + 2 * heavy(scope); }
  void init_cohort_state(std::uint64_t random_key, const Scope& scope, T* shared) const override {
    pack(random_key, kKeyParts, shared);
    std::fill_n(shared + kKeyParts, 2 * heavy(scope), T(0));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T* p = frame.take<T>(scope.P);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      Payload<T>& message = *messages[k];
      cpu::load_tile(input, k, 0, scope.P, p);
      message.positions = Positions::all;
      message.values = kNativeWire<T>;
      message.num_sent = message_length(context.phase, scope);
      message.value.resize_discard(message.num_sent);
      if (context.phase == 0)
        sketch(p, scope, unpack(kKeyParts, context.shared), message.value.data());
      else
        send_heavy(p, scope, context.shared + kKeyParts, state, k, message.value.data());
    }
  }

  void absorb_mean(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const override {
    if (phase == 0) return choose_heavy(mean.data(), scope, unpack(kKeyParts, shared), shared + kKeyParts);
    std::fill_n(estimate, scope.P, T(0));
    const std::size_t k = heavy(scope);
    for (std::size_t i = 0; i < k; ++i) estimate[unpack(2, shared + kKeyParts + 2 * i)] = mean[i];
    const T* part = mean.data() + k;
    for (const Segment& tensor : scope.excluded) {
      std::copy_n(part, tensor.size(), estimate + tensor.begin);
      part += tensor.size();
    }
  }

 private:
  static constexpr int kKeyParts = 4;
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(options_.rows); }
  [[nodiscard]] std::size_t columns() const { return static_cast<std::size_t>(options_.columns); }
  [[nodiscard]] std::size_t heavy(const Scope& scope) const { return kept_entries(options_.kept, num_compressed(scope)); }

  // S [rows,columns]
  void sketch(const T* p, const Scope& scope, std::uint64_t key, T* S) const {
    std::vector<double> sum(rows() * columns(), 0.0);
    for (std::size_t r = 0; r < rows(); ++r)
      for (const Segment& segment : scope.segments)
        for (std::size_t j = segment.begin; j < segment.end; ++j) {
          const Hash hash = hash_of(key, r, j, columns());
          sum[r * columns() + hash.column] += hash.sign * static_cast<double>(p[j]);
        }
    std::transform(sum.begin(), sum.end(), S, [](double x) { return static_cast<T>(x); });
  }

  // The k positions of largest estimates, ascending, ties to the lowest; as halves into `packed`.
  void choose_heavy(const T* S, const Scope& scope, std::uint64_t key, T* packed) const {
    std::vector<std::size_t> position;
    std::vector<double> estimate;
    std::vector<double> of_row(rows());
    for (const Segment& segment : scope.segments)
      for (std::size_t j = segment.begin; j < segment.end; ++j) {
        for (std::size_t r = 0; r < rows(); ++r) {
          const Hash hash = hash_of(key, r, j, columns());
          const double counter = hash.sign * static_cast<double>(S[r * columns() + hash.column]);
          of_row[r] = std::isnan(counter) ? 0.0 : counter;
        }
        position.push_back(j);
        estimate.push_back(std::fabs(median(of_row)));
      }
    std::vector<std::size_t> order(position.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t k = heavy(scope);
    const auto before = [&](std::size_t a, std::size_t b) { return estimate[a] != estimate[b] ? estimate[a] > estimate[b] : a < b; };
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k - 1), order.end(), before);
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
    for (std::size_t i = 0; i < k; ++i) pack(position[order[i]], 2, packed + 2 * i);
  }
  [[nodiscard]] static double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
  }

  // What was asked for, the excluded tensors, and the state.
  void send_heavy(const T* p, const Scope& scope, const T* packed, const StateWrite<T>& state, std::size_t k, T* out) const {
    const bool has_state = state.rule != StateRule::none;
    T* left = has_state ? state.out.row(k) : nullptr;
    if (has_state) std::copy_n(p, scope.P, left);
    for (std::size_t i = 0; i < heavy(scope); ++i) {
      const std::size_t j = unpack(2, packed + 2 * i);
      *out++ = p[j];
      if (has_state) left[j] = T(0);
    }
    for (const Segment& tensor : scope.excluded) {
      out = std::copy(p + tensor.begin, p + tensor.end, out);
      if (has_state) std::fill(left + tensor.begin, left + tensor.end, T(0));
    }
  }

  SketchedSgdOptions options_;
};

FL_REGISTER_HOST_PART(Compressor, SketchedSgd, SketchedSgdOptions,
                      (PartInfo{"compressor", "sketched_sgd", "heavy entries of the mean, found in a count sketch that adds up; two phases",
                                "Ivkin, Rothchild, Ullah, Braverman, Stoica, Arora, Sketched-SGD, NeurIPS 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
