#include "timing/transfers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace fl {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double rate_of(const LinkRates& link, LinkDirection direction) {
  return (direction == LinkDirection::down ? link.down : link.up) * (1 - link.loss);
}

// The messages that share the server's link. Between two events all rates are constant.
class SharedLink {
 public:
  SharedLink(const Network& network, LinkDirection direction, double shared, std::span<const Transfer> transfers)
      : network_(network), direction_(direction), shared_(shared), transfers_(transfers), ends_(transfers.size(), kNever) {
    waiting_.resize(transfers.size());
    std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
    // The first to leave is the last of the list.
    std::ranges::stable_sort(waiting_, [&](std::size_t a, std::size_t b) { return transfers[a].start_s > transfers[b].start_s; });
  }

  [[nodiscard]] std::vector<double> play() {
    while (!waiting_.empty() || !active_.empty()) {
      if (active_.empty()) now_ = std::max(now_, transfers_[waiting_.back()].start_s);
      if (now_ == kNever) break;
      start_those_due();
      divide();
      const double next = next_event();
      for (Flow& flow : active_) flow.left -= (next - now_) * flow.rate;
      now_ = next;
      end_those_due();
    }
    return ends_;
  }

 private:
  // A message on its way.
  struct Flow {
    std::size_t transfer = 0;
    double left = 0;               // bits
    double limit = 0, changes_at;  // rate of its own link, until a time
    double rate = 0;               // at which it passes now
  };

  void start_those_due() {
    while (!waiting_.empty() && transfers_[waiting_.back()].start_s <= now_) {
      active_.push_back({.transfer = waiting_.back(), .left = transfers_[waiting_.back()].bits, .limit = 0, .changes_at = now_});
      waiting_.pop_back();
    }
  }

  // Gives every flow its rate: the slowest links first, each the smaller of its own rate and an equal share of what is left.
  void divide() {
    for (Flow& flow : active_) {
      if (flow.changes_at > now_) continue;
      const std::uint32_t client = transfers_[flow.transfer].client;
      flow.limit = rate_of(network_.link(client, now_), direction_);
      flow.changes_at = network_.next_change(client, now_);
    }
    const auto is_slower = [](const Flow& a, const Flow& b) { return a.limit != b.limit ? a.limit < b.limit : a.transfer < b.transfer; };
    if (!std::ranges::is_sorted(active_, is_slower)) std::ranges::sort(active_, is_slower);
    double rest = shared_;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      active_[i].rate = std::min(active_[i].limit, rest / static_cast<double>(active_.size() - i));
      rest -= active_[i].rate;
    }
  }

  [[nodiscard]] static double end_of(const Flow& flow, double now) { return flow.left > 0 ? now + flow.left / flow.rate : now; }

  [[nodiscard]] double next_event() const {
    double next = waiting_.empty() ? kNever : transfers_[waiting_.back()].start_s;
    for (const Flow& flow : active_) next = std::min({next, end_of(flow, now_), flow.changes_at, transfers_[flow.transfer].until_s});
    return std::max(next, now_);
  }

  // A flow has ended when what is left of it would take less than the time that a double can tell from now.
  void end_those_due() {
    std::erase_if(active_, [&](const Flow& flow) {
      const bool has_passed = flow.left <= 0 || now_ + flow.left / flow.rate <= now_, has_left = transfers_[flow.transfer].until_s <= now_;
      if (has_passed) ends_[flow.transfer] = now_;
      return has_passed || has_left;
    });
  }

  const Network& network_;
  const LinkDirection direction_;
  const double shared_;
  const std::span<const Transfer> transfers_;
  std::vector<double> ends_;
  std::vector<std::size_t> waiting_;  // by time of their start, the first of them last
  std::vector<Flow> active_;          // by the rate of their own links
  double now_ = 0;
};

}  // namespace

double departure(const Network& network, LinkDirection direction, const Transfer& transfer) {
  double now = transfer.start_s, left = transfer.bits;
  while (now < transfer.until_s) {
    const double rate = rate_of(network.link(transfer.client, now), direction), change = network.next_change(transfer.client, now);
    const double end = now + left / rate;
    if (end <= change) return end <= transfer.until_s ? end : kNever;
    left -= (change - now) * rate;
    now = change;
  }
  return left > 0 || now > transfer.until_s ? kNever : now;
}

std::vector<double> departures(const Network& network, LinkDirection direction, double shared, std::span<const Transfer> transfers) {
  if (std::isfinite(shared)) return SharedLink(network, direction, shared, transfers).play();
  std::vector<double> ends;
  for (const Transfer& transfer : transfers) ends.push_back(departure(network, direction, transfer));
  return ends;
}

}  // namespace fl
