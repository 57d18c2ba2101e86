// Perm-K: the clients share a random permutation of the entries, and each of n clients sends its own n-th part of every segment.
//
//   C_i(x)_j = (n / c_j) x_j if client i is dealt entry j, else 0       c_j: how many clients are dealt entry j, 1 if n divides the size d
// The mean of C_1(x) .. C_n(x) is x exactly. Each C_i is unbiased with omega = E[n / c] - 1, which is n - 1 if n divides d and d - 1 if d
// divides n. The clients' errors are not independent, and their mean is nothing where the clients' vectors are equal:
//   E|mean_i (C_i(x_i) - x_i)|^2 = sum_j E[(n - c_j) / (c_j (n - 1))] (mean_i x_ij^2 - (mean_i x_ij)^2)
// Every client sends q = ceil(d/n) entries of a segment: the permutation is dealt out again from its start until all have as many, so that
// c_j differs by at most one. Who is dealt which part is drawn as well. Both sides draw it from the common seed: only values travel.
// clients = n: clients 0 .. n-1 share one permutation, the next n the next one. 0 stands for all clients of the run.
// Szlendak, Tyurin, Richtarik, "Permutation compressors for provably faster distributed nonconvex optimization", ICLR 2022; its form for
// sizes that divide each other.
// Group: sparsifier
#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/known_sizes.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/value_format.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct PermKOptions {
  std::int64_t clients = 0;
  ValueFormat value_format = ValueFormat::native;
};

inline void describe(Schema& s, PermKOptions& o) {
  s.field("clients", o.clients, "clients n that share a permutation, each sending 1/n of the entries; 0 = all clients of the run")
      .at_least(0)
      .at_most(4294967295.0);
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
}

// One size of segments dealt out to n clients: q entries for each, where `more` entries are dealt least + 1 times and the others `least`
// times.
struct DealtSegment {
  std::size_t size = 0, clients = 0;
  [[nodiscard]] std::size_t entries() const { return (size + clients - 1) / clients; }
  [[nodiscard]] std::size_t least() const { return clients * entries() / size; }
  [[nodiscard]] std::size_t more() const { return clients * entries() % size; }
  // Returns E[n / c_j] over the permutations.
  [[nodiscard]] double mean_factor() const {
    const auto n = static_cast<double>(clients), part = static_cast<double>(more()) / static_cast<double>(size);
    return part * n / static_cast<double>(least() + 1) + (1 - part) * n / static_cast<double>(least());
  }
};

namespace FL_DEVICE_NS {
namespace {

// The entries that the n clients of a group are dealt in one round: positions, ascending in every segment, and the factors n / c_j. Both
// are [n, total].
template <class T>
struct Deal {
  std::uint64_t key = 0;
  std::uint32_t round = 0, group = 0;
  std::vector<Segment> segments;
  std::size_t total = 0;
  std::vector<std::uint32_t> index;
  std::vector<T> factor;

  [[nodiscard]] bool is_of(std::uint64_t other_key, std::uint32_t other_round, std::uint32_t other_group, const Scope& scope) const {
    return key == other_key && round == other_round && group == other_group &&
           std::ranges::equal(segments, scope.segments,
                              [](const Segment& a, const Segment& b) { return a.begin == b.begin && a.end == b.end; });
  }
};

// Deals the entries of one segment out; those of client i begin at `at` of its row.
template <class T>
void deal_segment(const RandomStream& stream, const Segment& segment, std::size_t n, std::size_t at, Deal<T>& deal) {
  const DealtSegment dealt{segment.size(), n};
  RandomSequence random(stream);
  std::vector<std::uint32_t> place(segment.size()), taker(n);
  std::iota(place.begin(), place.end(), 0u);
  std::iota(taker.begin(), taker.end(), 0u);
  random.shuffle(place.begin(), place.end());
  random.shuffle(taker.begin(), taker.end());
  std::vector<std::size_t> next(n, at);
  for (std::size_t j = 0; j < segment.size(); ++j) {
    const std::size_t copies = dealt.least() + (place[j] < dealt.more() ? 1 : 0);
    for (std::size_t copy = 0; copy < copies; ++copy) {
      const std::size_t client = taker[(place[j] + copy * segment.size()) / dealt.entries()], to = client * deal.total + next[client]++;
      deal.index[to] = static_cast<std::uint32_t>(segment.begin + j);
      deal.factor[to] = static_cast<T>(static_cast<double>(n) / static_cast<double>(copies));
    }
  }
}

template <class T>
class PermK final : public Compressor<T> {
 public:
  explicit PermK(const PermKOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double factor = 1, largest = 1;
    for (const Segment& segment : scope.segments) {
      const DealtSegment dealt{segment.size(), group_of(scope)};
      factor = std::max(factor, dealt.mean_factor());
      largest = std::max(largest, static_cast<double>(dealt.clients) / static_cast<double>(dealt.least()));
    }
    const double rounding = relative_rounding<T>(options_.value_format);
    Contract contract;
    contract.cost = draw_cost(scope);
    contract.domain = rounding_domain<T>(options_.value_format, largest);
    contract.errors_are_dealt = true;
    // As for random_k: rounding moves the mean by up to u |x_j| and raises the second moment by up to (1+u)^2.
    contract.omega = (1 + rounding) * (1 + rounding) * factor - 1 + 2 * rounding;
    if (rounding > 0) contract.domain.unbiased_up_to = "the rounding";
    return contract;
  }

  void check(const Scope& scope) const override {
    const std::size_t n = group_of(scope);
    const std::string of_run = std::to_string(scope.clients);
    if (options_.clients == 0 && scope.clients == 0)
      throw key_error("clients", "perm_k: outside of a run, the number of clients that share a permutation has to be given");
    if (n == 1) throw key_error("clients", "perm_k: one sender would send every entry, and there must be at least 2");
    if (scope.clients % n != 0)
      throw key_error("clients", "perm_k: the " + of_run + " clients of the run cannot be divided into groups of " + std::to_string(n) +
                                     "; give a divisor of " + of_run + ", or 0 for one group");
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    MessageLevels known;
    known.positions = &sizes_.of(sizes_in(scope).span());
    return known;
  }

  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    for (std::size_t k = 0; k < messages.size(); ++k)
      if (messages[k]->has_known_positions())
        list_rows(exec, sizes_in(scope).span(), dealt_to(context, scope, context.clients.subspan(k, 1)).index, messages.subspan(k, 1));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const Parts parts = dealt_to(context, scope, context.clients);
    list_rows(exec, sizes_in(scope).span(), parts.index, messages);
    gather_scaled_rows(exec, input, scope, std::span<const T>(parts.factor), wire_of<T>(options_.value_format), state, messages);
    for (Payload<T>* message : messages) message->set_known_positions(true);
  }

 private:
  // Every client computes the permutation of its group, which sorts a random number of each entry, and sends its own part.
  [[nodiscard]] EntryCost draw_cost(const Scope& scope) const {
    const double share = 1 / static_cast<double>(std::max<std::size_t>(group_of(scope), 1));
    return costs::sorting(static_cast<double>(largest_segment(scope))) + EntryCost{2 + 3 * share, kRandomOperations + share};
  }
  // The entries that some clients are dealt, [K, total].
  struct Parts {
    std::vector<std::uint32_t> index;
    std::vector<T> factor;
  };

  // Returns n, the clients that share a permutation; 1, which check() refuses, where nobody has said how many these are.
  [[nodiscard]] std::size_t group_of(const Scope& scope) const {
    return options_.clients > 0 ? static_cast<std::size_t>(options_.clients) : std::max<std::size_t>(scope.clients, 1);
  }
  // Returns how many entries of every segment each client sends.
  [[nodiscard]] PerSegment<std::uint32_t> sizes_in(const Scope& scope) const {
    return {scope, [n = group_of(scope)](std::size_t size) { return static_cast<std::uint32_t>(DealtSegment{size, n}.entries()); }};
  }

  [[nodiscard]] Parts dealt_to(const CompressContext<T>& context, const Scope& scope, std::span<const std::uint32_t> clients) const {
    const std::size_t n = group_of(scope);
    Parts parts;
    for (const std::uint32_t client : clients) {
      const std::shared_ptr<const Deal<T>> deal = deal_of(context, static_cast<std::uint32_t>(client / n), scope);
      const std::size_t first = client % n * deal->total, last = first + deal->total;
      parts.index.insert(parts.index.end(), deal->index.data() + first, deal->index.data() + last);
      parts.factor.insert(parts.factor.end(), deal->factor.data() + first, deal->factor.data() + last);
    }
    return parts;
  }

  // Returns what a group is dealt in this round. The last one is kept, since its clients follow each other.
  [[nodiscard]] std::shared_ptr<const Deal<T>> deal_of(const CompressContext<T>& context, std::uint32_t group, const Scope& scope) const {
    {
      const std::lock_guard lock(mutex_);
      if (last_ != nullptr && last_->is_of(context.random_key, context.round, group, scope)) return last_;
    }
    auto deal = std::make_shared<Deal<T>>();
    deal->key = context.random_key, deal->round = context.round, deal->group = group, deal->segments = scope.segments;
    const std::size_t n = group_of(scope);
    const PerSegment<std::uint32_t> sizes = sizes_in(scope);
    for (const std::uint32_t entries : sizes.span()) deal->total += entries;
    deal->index.resize(n * deal->total);
    deal->factor.resize(n * deal->total);
    std::size_t at = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const auto layer = static_cast<std::uint32_t>(s);
      deal_segment(RandomStream(context.random_key, group, context.round, layer >> 16, layer & 0xFFFF), scope.segments[s], n, at, *deal);
      at += sizes.span()[s];
    }
    const std::lock_guard lock(mutex_);
    last_ = deal;
    return deal;
  }

  PermKOptions options_;
  KnownSizes sizes_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Deal<T>> last_;
};

FL_REGISTER_PART(Compressor, PermK, PermKOptions,
                 (PartInfo{"compressor", "perm_k", "the clients' own parts of one random permutation; the mean of equal vectors is exact",
                           "Szlendak, Tyurin, Richtarik, Permutation compressors, ICLR 2022"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
