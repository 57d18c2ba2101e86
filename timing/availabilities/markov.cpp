// Clients come and go: times on and off are exponential, independently for each client.
//
//   P(on at t + s | on at t) = p + (1 - p) exp(-lambda s),   p = on / (on + off),   lambda = 1 / on + 1 / off
// with the mean times on and off. At time 0 a client is on with probability p, so the process is stationary.
//
// is_here() is a function of client and time alone, without a walk from time 0. Time is cut into blocks of B = 16 (on + off). The state at
// the beginning of block k is drawn by one number u_k: on if u_k < p - p e, off if u_k >= p + (1 - p) e, and between, with probability e =
// exp(-lambda B) <= exp(-64), that of the block before. The path within a block is drawn until it ends in the state at the beginning of the
// next block, which makes it a draw from the chain under this condition.
// With `share_sigma` the clients differ: logit p_i = logit p + share_sigma z_i (timing/client_quantiles.hpp); on + off is the same for all.
// Sources: two-state on-off models of presence: M. Ribeiro, H. Vikalo, G. de Veciana, "Federated learning under intermittent client
// availability and time-varying communication constraints", IEEE Journal of Selected Topics in Signal Processing 17(1), 2023.
#include <algorithm>
#include <cmath>

#include "timing/availability.hpp"
#include "timing/client_quantiles.hpp"

namespace fl {
namespace {

constexpr double kLeastShare = 0.001, kCyclesOfBlock = 16;

struct MarkovOptions {
  double mean_on_s = 0, mean_off_s = 0, share_sigma = 0;
  QuantileOptions quantiles;
};
void describe(Schema& schema, MarkovOptions& options) {
  constexpr double kLongest_s = 1e12;
  schema.field("mean_on_s", options.mean_on_s, "mean time for which a client can be reached")
      .at_least(1e-6)
      .at_most(kLongest_s)
      .unit("s")
      .required();
  schema.field("mean_off_s", options.mean_off_s, "mean time for which it cannot").at_least(1e-6).at_most(kLongest_s).unit("s").required();
  schema.field("share_sigma", options.share_sigma, "standard deviation of the logit of the clients' shares of time on; 0: all alike")
      .at_least(0)
      .at_most(5);
  describe_quantiles(schema, options.quantiles, "here more often");
}
void validate(const MarkovOptions& options, Problems& problems) {
  validate_quantiles(options.quantiles, problems);
  const double share = options.mean_on_s / (options.mean_on_s + options.mean_off_s);
  if (share < kLeastShare || share > 1 - kLeastShare)
    problems.push_back(
        {"mean_on_s", "and mean_off_s differ by more than a factor of 999, beyond which kind = \"always\" or \"trace\" is meant"});
  if (options.quantiles.follows != Follows::nothing && options.share_sigma == 0)
    problems.push_back({"follows", "has no effect, because with share_sigma = 0 all clients are here equally often"});
}

class Markov final : public Availability {
 public:
  explicit Markov(const MarkovOptions& options) : options_(options), cycle_s_(options.mean_on_s + options.mean_off_s) {}

  void open(const ClientFacts& clients) override {
    ClientQuantiles quantiles;
    quantiles.open(options_.quantiles, clients, Purpose::availability);
    key_ = hash64(clients.seed, static_cast<std::uint64_t>(Purpose::availability));
    share_.resize(clients.num_clients);
    const double odds = options_.mean_on_s / options_.mean_off_s;
    for (std::uint32_t i = 0; i < share_.size(); ++i) {
      const double own = odds * std::exp(options_.share_sigma * quantiles.score(i));
      share_[i] = std::clamp(own / (1 + own), kLeastShare, 1 - kLeastShare);
    }
  }

  [[nodiscard]] bool is_here(std::uint32_t client, double now_s) const override {
    const std::uint64_t block = block_at(now_s);
    const Path path = path_of(client, block);
    const auto passed = std::ranges::upper_bound(path.switches, now_s);
    return path.starts_on == ((passed - path.switches.begin()) % 2 == 0);
  }

  [[nodiscard]] double next_change(std::uint32_t client, double now_s) const override {
    const bool now = is_here(client, now_s);
    for (double time = now_s;;) {
      time = next_switch(client, time);
      if (is_here(client, time) != now) return time;
    }
  }

 private:
  enum Layer : std::uint32_t { states = 1, paths = 2 };

  struct Path {
    bool starts_on = false;
    std::vector<double> switches{};  // times, ascending
  };

  [[nodiscard]] double block_start(std::uint64_t block) const { return static_cast<double>(block) * kCyclesOfBlock * cycle_s_; }
  // Returns the number of the block with block_start(k) <= t < block_start(k + 1).
  [[nodiscard]] std::uint64_t block_at(double t) const {
    constexpr double kMost = 0x1p31;
    const double about = std::floor(t / (kCyclesOfBlock * cycle_s_));
    if (!(about < kMost))
      throw Error("a time is too large for availability.kind = \"markov\": more than 2^31 times 16 (mean_on_s + mean_off_s)");
    auto block = static_cast<std::uint64_t>(about);
    if (block > 0 && block_start(block) > t) --block;
    if (block_start(block + 1) <= t) ++block;
    return block;
  }

  [[nodiscard]] bool starts_on(std::uint32_t client, std::uint64_t block) const {
    const double p = share_[client], e = std::exp(-kCyclesOfBlock / (p * (1 - p)));
    for (;; --block) {
      const RandomStream stream(key_, client, 0, 0, states);
      const double u =
          std::ldexp(static_cast<double>(stream.bits(2 * block)), -32) + std::ldexp(static_cast<double>(stream.bits(2 * block + 1)), -64);
      if (block == 0) return u < p;
      if (u < p - p * e) return true;
      if (u >= p + (1 - p) * e) return false;
    }
  }

  // Returns the first path of many draws that ends in the state at the beginning of the next block.
  [[nodiscard]] Path path_of(std::uint32_t client, std::uint64_t block) const {
    constexpr std::uint32_t kMostDraws = 1U << 16;  // all of them fail with probability 0.999^65536 at the most
    const bool ends_on = starts_on(client, block + 1);
    Path path{.starts_on = starts_on(client, block)};
    const double mean_on = share_[client] * cycle_s_, mean_off = cycle_s_ - mean_on, begin = block_start(block);
    for (std::uint32_t draw = 0; draw < kMostDraws; ++draw) {
      RandomSequence random(RandomStream(key_, client, static_cast<std::uint32_t>(block), draw, paths));
      bool is_on = path.starts_on;
      path.switches.clear();
      for (double past = 0;;) {
        past -= (is_on ? mean_on : mean_off) * std::log1p(-random.uniform());
        if (past >= kCyclesOfBlock * cycle_s_) break;
        path.switches.push_back(begin + past);
        is_on = !is_on;
      }
      if (is_on == ends_on) return path;
    }
    throw Error("no path of availability.kind = \"markov\" was found");
  }

  [[nodiscard]] double next_switch(std::uint32_t client, double now_s) const {
    for (std::uint64_t block = block_at(now_s);; ++block) {
      const Path path = path_of(client, block);
      const auto next = std::ranges::upper_bound(path.switches, now_s);
      if (next != path.switches.end()) return *next;
    }
  }

  MarkovOptions options_;
  double cycle_s_ = 1;
  std::uint64_t key_ = 0;
  std::vector<double> share_;  // [N], of time on
};

FL_REGISTER_AVAILABILITY(Markov, MarkovOptions, "markov", "exponential times on and off",
                         "Ribeiro, Vikalo, de Veciana, \"Federated learning under intermittent client availability and time-varying "
                         "communication constraints\", IEEE JSTSP 17(1), 2023");

}  // namespace
}  // namespace fl
