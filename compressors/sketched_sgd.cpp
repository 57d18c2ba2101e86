// Sketched SGD: the server finds the heavy entries of the mean in a summable count sketch, then clients send their exact values.
//
//   phase 0:  S_i[r, h_r(j)] += sgn_r(j) p_ij
//             everyone: S = mean S_i,  e_j = median_r sgn_r(j) S[r, h_r(j)],  H = the k largest |e_j|
//   phase 1:  v_i = p_i on H
//             everyone: estimate = mean v_i on H, 0 elsewhere;          C(p_i) = p_i on H
//
// Both messages are plain vectors that can be summed: rows * columns numbers, then k. C is linear given the shared H, and the memory of
// error feedback keeps p_i outside H. h_r and sgn_r are fixed random functions of the position, drawn with the run's compressor seed. If
// the number of columns is of the order of k, the sketch finds with high probability every entry whose square is at least |mean p|^2 / k,
// and C is about as good as Top-k of the mean; no class holds for every input. The paper requests P k candidates and keeps k of their
// means; a client's memory would have to wait for that choice. Here all requested entries are kept: k corresponds to the paper's P k.
// Excluded tensors are sent uncompressed in phase 1. k and ratio count over all compressed entries, for every scope.
// Shared state: four numbers of the hash functions' key, and the positions H as two 16-bit halves each.
// Every counter adds its entries in double, in ascending position. A CPU loops over the entries. On a GPU positions are sorted by their
// column, once for all clients of a block, and each counter's thread adds its own entries: the order and the bytes are the same, which
// atomics would not guarantee. Published bits: 32 rows columns + 32 k. N. Ivkin, D. Rothchild, E. Ullah, V. Braverman, I. Stoica, R. Arora,
// "Communication-efficient distributed SGD with sketching", NeurIPS 2019; D. Rothchild et al., "FetchSGD", ICML 2020 (whose memory is
// itself a sketch, unlike here).
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/few_numbers.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/ops.hpp"

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

// Computes h_r(j) and sgn_r(j) from one random word.
struct Hash {
  std::size_t column;
  double sign;
};
FL_HD inline Hash hash_of(std::uint64_t key, std::size_t row, std::size_t j, std::size_t columns) {
  const std::uint32_t word = RandomStream(key, kEveryone, 0, 0, static_cast<std::uint32_t>(row)).bits(j);
  return {static_cast<std::size_t>(static_cast<std::uint64_t>(word >> 1) * columns >> 31), (word & 1) != 0 ? 1.0 : -1.0};
}

// Stores 16 bits of an unsigned number in each element. Every floating point format holds them exactly.
template <class T>
void pack(std::uint64_t number, int parts, T* to) {
  for (int i = 0; i < parts; ++i) to[i] = static_cast<T>(number >> (16 * i) & 0xFFFF);
}
// Reads them. Parts that pack() does not write count as 0: the state may come from a file or be another caller's.
template <class T>
FL_HD std::uint64_t unpack(int parts, const T* from) {
  std::uint64_t number = 0;
  for (int i = 0; i < parts; ++i) {
    const T part = from[i];
    number |= static_cast<std::uint64_t>(part >= T(0) && part <= T(0xFFFF) ? part : T(0)) << (16 * i);
  }
  return number;
}
// Returns the position that two parts stand for, at most the last one of P.
template <class T>
FL_HD std::size_t unpack_position(const T* from, std::size_t P) {
  const auto position = static_cast<std::size_t>(unpack(2, from));
  return position < P ? position : P - 1;
}

// Writes the positions from `begin` on of a segment as keys that sort by column, then by position.
struct ColumnKey {
  std::uint64_t key;
  std::size_t row, columns, begin;
  std::uint64_t* out;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t j = begin + i;
    out[i] = static_cast<std::uint64_t>(hash_of(key, row, j, columns).column) << 32 | j;
  }
};

// Computes counter i of a row of S from the n sorted keys.
template <class T>
struct SumCounter {
  const T* p;
  const std::uint64_t* sorted;
  std::size_t n;
  std::uint64_t key;
  std::size_t row, columns;
  T* S;
  FL_HD void operator()(std::size_t i) const {
    double sum = 0;
    for (std::size_t at = first_of(i); at < n && sorted[at] >> 32 == i; ++at) {
      const std::size_t j = sorted[at] & 0xFFFFFFFFu;
      sum += hash_of(key, row, j, columns).sign * static_cast<double>(p[j]);
    }
    S[i] = static_cast<T>(sum);
  }
  [[nodiscard]] FL_HD std::size_t first_of(std::size_t i) const {
    std::size_t low = 0, high = n;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (sorted[middle] >> 32 < i)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// Writes requested entry i. A sent entry leaves no state.
template <class T>
struct SendHeavy {
  const T *p, *packed;
  StateWrite<T> state;
  std::size_t k, P;
  T* out;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t j = unpack_position(packed + 2 * i, P);
    out[i] = p[j];
    if (state.rule != StateRule::none) state.out.row(k)[j] = T(0);
  }
};
template <class T>
struct SendTensor {
  const T* p;
  StateWrite<T> state;
  std::size_t k, begin;
  T* out;
  FL_HD void operator()(std::size_t i) const {
    out[i] = p[begin + i];
    if (state.rule != StateRule::none) state.out.row(k)[begin + i] = T(0);
  }
};

template <class T>
class SketchedSgd final : public Compressor<T>, public Phases<T> {
 public:
  explicit SketchedSgd(const SketchedSgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = stated_cost(scope);
    contract.linear = true;
    return contract;
  }
  void check(const Scope& scope) const override {
    const std::size_t d = num_compressed(scope);
    if (options_.kept.k > 0 && static_cast<std::size_t>(options_.kept.k) > d)
      throw key_error("k", "sketched_sgd: k = " + std::to_string(options_.kept.k) + " is more than the " + std::to_string(d) +
                               " parameters that are compressed; lower k or give a ratio instead");
  }

  [[nodiscard]] const Phases<T>* phases() const override { return this; }
  [[nodiscard]] int count() const override { return 2; }
  [[nodiscard]] std::size_t length(int phase, const Scope& scope) const override {
    return phase == 0 ? rows() * columns() : heavy(scope) + num_excluded(scope);
  }
  [[nodiscard]] std::size_t state_size(const Scope& scope) const override { return kKeyParts + 2 * heavy(scope); }
  void init_state(std::uint64_t random_key, const Scope& scope, T* shared) const override {
    pack(random_key, kKeyParts, shared);
    std::fill_n(shared + kKeyParts, 2 * heavy(scope), T(0));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const std::size_t entries = length(context.phase, scope);
    for (Payload<T>* message : messages) {
      message->place_on(kThisDevice);
      message->positions = Positions::all;
      message->values = kNativeWire<T>;
      message->num_sent = entries;
      message->value.resize_discard(entries);
    }
    if (context.phase == 0)
      sketch(exec, input, scope, unpack(kKeyParts, on_host(exec, context.shared, kKeyParts).data()), messages);
    else
      send_heavy(exec, input, scope, context.shared + kKeyParts, state, messages);
  }

  void absorb(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const override {
    if (phase == 0) return choose_heavy(mean.data(), scope, unpack(kKeyParts, shared), shared + kKeyParts);
    std::fill_n(estimate, scope.P, T(0));
    const std::size_t k = heavy(scope);
    for (std::size_t i = 0; i < k; ++i) estimate[unpack_position(shared + kKeyParts + 2 * i, scope.P)] = mean[i];
    const T* part = mean.data() + k;
    for (const Segment& tensor : scope.excluded) {
      std::copy_n(part, tensor.size(), estimate + tensor.begin);
      part += tensor.size();
    }
  }

 private:
  // Both the sketch and the estimates of all entries take, for each row, a hash and a sum; the estimates are sorted in their rows and the
  // heavy entries are selected.
  [[nodiscard]] EntryCost stated_cost(const Scope& scope) const {
    const auto r = static_cast<double>(rows());
    return costs::copy() + EntryCost{2 * r, r * (kRandomOperations + 2)} + EntryCost{2 * r + 1, r * (kRandomOperations + 2)} +
           costs::sorting(r) + costs::selection(kept_fraction(options_.kept, scope));
  }
  static constexpr int kKeyParts = 4;
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(options_.rows); }
  [[nodiscard]] std::size_t columns() const { return static_cast<std::size_t>(options_.columns); }
  [[nodiscard]] std::size_t heavy(const Scope& scope) const { return kept_entries(options_.kept, num_compressed(scope)); }

  // Writes the message S [rows,columns].
  void sketch(const Exec& exec, const Affine<T>& input, const Scope& scope, std::uint64_t key,
              std::span<Payload<T>* const> messages) const {
    if constexpr (kThisDevice == Device::cpu)
      sketch_by_entry(exec, input, scope, key, messages);
    else
      sketch_by_counter(exec, input, scope, key, messages);
  }
  void sketch_by_entry(const Exec& exec, const Affine<T>& input, const Scope& scope, std::uint64_t key,
                       std::span<Payload<T>* const> messages) const {
    Workspace::Frame frame(*exec.workspace);
    T* p = frame.take<T>(scope.P);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, p);
      std::vector<double> sum(rows() * columns(), 0.0);
      for (std::size_t r = 0; r < rows(); ++r)
        for (const Segment& segment : scope.segments)
          for (std::size_t j = segment.begin; j < segment.end; ++j) {
            const Hash hash = hash_of(key, r, j, columns());
            sum[r * columns() + hash.column] += hash.sign * static_cast<double>(p[j]);
          }
      std::transform(sum.begin(), sum.end(), messages[k]->value.data(), [](double x) { return static_cast<T>(x); });
    }
  }
  void sketch_by_counter(const Exec& exec, const Affine<T>& input, const Scope& scope, std::uint64_t key,
                         std::span<Payload<T>* const> messages) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t n = num_compressed(scope);
    T* p = frame.take<T>(scope.P);
    auto* sorted = frame.take<std::uint64_t>(n);
    for (std::size_t r = 0; r < rows(); ++r) {
      std::size_t at = 0;
      for (const Segment& segment : scope.segments) {
        for_each(exec, segment.size(), ColumnKey{key, r, columns(), segment.begin, sorted + at});
        at += segment.size();
      }
      sort_rows(exec, sorted, 1, n);
      for (std::size_t k = 0; k < messages.size(); ++k) {
        load_vector(exec, input, k, p);
        for_each(exec, columns(), SumCounter<T>{p, sorted, n, key, r, columns(), messages[k]->value.data() + r * columns()});
      }
    }
  }

  // Finds the k positions with the largest estimates, ascending, ties to the lowest, and writes them as 16-bit halves to `packed`.
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
        const double size = std::fabs(median(of_row));
        position.push_back(j);
        estimate.push_back(std::isnan(size) ? 0.0 : size);  // the mean of two infinities
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

  // Writes the requested entries, then the excluded tensors, to the message, and writes the state.
  void send_heavy(const Exec& exec, const Affine<T>& input, const Scope& scope, const T* packed, const StateWrite<T>& state,
                  std::span<Payload<T>* const> messages) const {
    Workspace::Frame frame(*exec.workspace);
    T* p = frame.take<T>(scope.P);
    for (std::size_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, p);
      if (state.rule != StateRule::none) for_each(exec, scope.P, WriteRow<T>{p, state.out, k});
      T* out = messages[k]->value.data();
      for_each(exec, heavy(scope), SendHeavy<T>{p, packed, state, k, scope.P, out});
      out += heavy(scope);
      for (const Segment& tensor : scope.excluded) {
        for_each(exec, tensor.size(), SendTensor<T>{p, state, k, tensor.begin, out});
        out += tensor.size();
      }
    }
  }

  SketchedSgdOptions options_;
};

FL_REGISTER_PART(Compressor, SketchedSgd, SketchedSgdOptions,
                 (PartInfo{"compressor", "sketched_sgd", "heavy entries of the mean, found in a count sketch that adds up; two phases",
                           "Ivkin, Rothchild, Ullah, Braverman, Stoica, Arora, Sketched-SGD, NeurIPS 2019"}));
const bool kSketchedSgdDiffers = add_difference(
    {"compressor", "sketched_sgd",
     "the publication asks for P k candidates and keeps the k largest of their means; here all candidates that were asked for are kept"});

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
