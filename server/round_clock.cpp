#include "server/round_clock.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fl_core/random/random.hpp"

namespace fl {

namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
}

std::vector<std::uint8_t> RoundClock::wait_for_any(std::span<const std::uint32_t> cohort) {
  std::vector<std::uint8_t> is_here(cohort.size());
  const auto look = [&] {
    std::ranges::transform(cohort, is_here.begin(),
                           [this](std::uint32_t client) -> std::uint8_t { return parts_.availability.is_here(client, now_s_) ? 1 : 0; });
    return cohort.empty() || std::ranges::find(is_here, std::uint8_t{1}) != is_here.end();
  };
  while (!look()) {
    double next = kNever;
    for (const std::uint32_t client : cohort) next = std::min(next, parts_.availability.next_change(client, now_s_));
    if (next == kNever) break;
    now_s_ = next;
  }
  return is_here;
}

// Returns how late a client's message is, in addition to its bits: the latency of its link and its jitter.
double RoundClock::delay(std::uint32_t client, std::uint32_t round, int message, double now_s) const {
  const LinkRates link = parts_.network.link(client, now_s);
  if (link.jitter_s == 0) return link.latency_s;
  const RandomStream draws(hash64(parts_.seed, static_cast<std::uint64_t>(Purpose::jitter)), client, round);
  return link.latency_s + link.jitter_s * draws.uniform<double>(static_cast<std::uint64_t>(message));
}

void RoundClock::open(std::uint32_t round, std::span<const std::uint32_t> cohort, std::size_t awaited,
                      std::span<const std::uint64_t> down_bits) {
  const std::size_t M = cohort.size();
  open_ = {.round = round, .awaited = awaited == 0 ? M : std::min(awaited, M)};
  open_.ready_s.assign(M, now_s_);
  open_.counts.assign(M, 1);
  has_left_.assign(M, 0);
  last_ = {.opened_s = now_s_, .closed_s = now_s_, .ended_s = now_s_, .cohort{cohort.begin(), cohort.end()}};
  last_.clients.assign(M, {});
  for (std::size_t i = 0; i < M; ++i) {
    open_.until_s.push_back(parts_.availability.next_change(cohort[i], now_s_));
    last_.clients[i].link = parts_.network.link(cohort[i], now_s_);
  }
  receive(down_bits, 0);
  for (std::size_t i = 0; i < M; ++i) {
    const double seconds = parts_.devices.rates(cohort[i]).seconds(parts_.work.local(cohort[i], round));
    open_.ready_s[i] += seconds;
    last_.clients[i].compute_s = seconds;
  }
}

void RoundClock::send_mean(std::span<const std::uint64_t> down_bits) { receive(down_bits, 2); }

// Lets the clients receive what the server sends to each of them now, and read it. `message` numbers the draws of jitter.
void RoundClock::receive(std::span<const std::uint64_t> down_bits, int message) {
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < down_bits.size(); ++i)
    transfers.push_back({last_.cohort[i], now_s_, static_cast<double>(down_bits[i]), open_.until_s[i]});
  const std::vector<double> departed = departures(parts_.network, LinkDirection::down, parts_.server.down, transfers);
  for (std::size_t i = 0; i < departed.size(); ++i) {
    const std::uint32_t client = last_.cohort[i];
    const double arrived = departed[i] + delay(client, open_.round, message, now_s_);
    const double reading = parts_.devices.rates(client).seconds(parts_.work.reading(static_cast<double>(down_bits[i])));
    open_.ready_s[i] = arrived + reading;
    last_.clients[i].down_bits += static_cast<double>(down_bits[i]);
    last_.clients[i].down_s += arrived - now_s_;
    last_.clients[i].compute_s += reading;
  }
}

std::span<const std::uint8_t> RoundClock::close_phase(int phase, std::span<const std::uint64_t> up_bits,
                                                      std::span<const std::uint8_t> is_sent) {
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < up_bits.size(); ++i) {
    const std::uint32_t client = last_.cohort[i];
    const double making = parts_.devices.rates(client).seconds(parts_.work.message(phase, static_cast<double>(up_bits[i])));
    const double start = is_sent[i] != 0 ? open_.ready_s[i] + making : kNever;
    last_.clients[i].message_s += making;
    last_.clients[i].up_bits += static_cast<double>(up_bits[i]);
    has_left_[i] = start >= open_.until_s[i] ? 1 : 0;
    transfers.push_back({client, start, static_cast<double>(up_bits[i]), open_.until_s[i]});
  }
  const std::vector<double> departed = departures(parts_.network, LinkDirection::up, parts_.server.up, transfers);
  for (std::size_t i = 0; i < departed.size(); ++i) {
    ClientTimes& times = last_.clients[i];
    times.arrived_s =
        departed[i] + (std::isfinite(departed[i]) ? delay(last_.cohort[i], open_.round, 2 * phase + 1, transfers[i].start_s) : 0);
    if (std::isfinite(times.arrived_s)) times.up_s += times.arrived_s - transfers[i].start_s;
  }
  decide();
  const double bits = std::inner_product(up_bits.begin(), up_bits.end(), open_.counts.begin(), 0.0, std::plus<>(),
                                         [](auto b, auto counts) { return counts != 0 ? static_cast<double>(b) : 0.0; });
  const auto messages = static_cast<std::size_t>(std::ranges::count(open_.counts, 1));
  now_s_ = last_.closed_s + parts_.server.device.seconds(parts_.work.aggregation(phase, messages, bits));
  return open_.counts;
}

// Asks the policy when the phase closes, and whose messages count. A client that did not count in an earlier phase is not asked. Where the
// policy waits for clients that have left, the server stops when the last of the others has arrived or has left.
void RoundClock::decide() {
  std::vector<double> arrival_s;
  std::vector<std::size_t> positions;
  double known_s = 0;  // the time after which nothing can arrive
  for (std::size_t i = 0; i < open_.counts.size(); ++i) {
    if (open_.counts[i] == 0) continue;
    positions.push_back(i);
    arrival_s.push_back(last_.clients[i].arrived_s - last_.opened_s);
    const double ends = std::isfinite(arrival_s.back()) ? arrival_s.back() : open_.until_s[i] - last_.opened_s;
    if (std::isfinite(ends)) known_s = std::max(known_s, ends);
  }
  if (positions.empty()) return;
  open_.phase_said.assign(positions.size(), 0);
  const double closes = parts_.delivery.decide(arrival_s, std::min(open_.awaited, positions.size()), open_.phase_said);
  double closed_s = last_.opened_s + (std::isfinite(closes) ? closes : known_s);
  for (std::size_t k = 0; k < positions.size(); ++k)  // the same number, before it was made relative to the opening
    if (std::isfinite(closes) && arrival_s[k] == closes) closed_s = last_.clients[positions[k]].arrived_s;
  last_.closed_s = std::max(last_.closed_s, closed_s);
  for (std::size_t k = 0; k < positions.size(); ++k) open_.counts[positions[k]] = open_.phase_said[k];
}

void RoundClock::close() {
  now_s_ += parts_.server.device.seconds(parts_.work.step());
  last_.ended_s = now_s_;
}

void RoundClock::skip() { last_ = {.opened_s = now_s_, .closed_s = now_s_, .ended_s = now_s_}; }

void RoundClock::send_after(std::span<const std::uint64_t> up_bits) {
  std::vector<Transfer> transfers;
  for (std::size_t i = 0; i < up_bits.size(); ++i)
    transfers.push_back({last_.cohort[i], now_s_, static_cast<double>(up_bits[i]), open_.until_s[i]});
  const std::vector<double> departed = departures(parts_.network, LinkDirection::up, parts_.server.up, transfers);
  double end = now_s_;
  for (std::size_t i = 0; i < departed.size(); ++i)
    if (up_bits[i] > 0 && std::isfinite(departed[i])) end = std::max(end, departed[i] + delay(last_.cohort[i], open_.round, 3, now_s_));
  now_s_ = last_.ended_s = end;
}

LoneMessage RoundClock::alone(std::uint32_t client, std::uint32_t round, std::uint64_t down_bits, std::uint64_t up_bits) const {
  const DeviceRates device = parts_.devices.rates(client);
  const double until_s = parts_.availability.next_change(client, now_s_), down = static_cast<double>(down_bits),
               up = static_cast<double>(up_bits);
  const double received = departure(parts_.network, LinkDirection::down, {client, now_s_, down, until_s}) + delay(client, round, 0, now_s_);
  const double reading = device.seconds(parts_.work.reading(down)), computing = device.seconds(parts_.work.local(client, round)),
               making = device.seconds(parts_.work.message(0, up));
  const double start = received + reading + computing + making;
  const double departed = start < until_s ? departure(parts_.network, LinkDirection::up, {client, start, up, until_s}) : kNever;
  const double arrived = departed + (std::isfinite(departed) ? delay(client, round, 1, start) : 0);
  LoneMessage message{.ends_s = arrived, .arrives = std::isfinite(arrived)};
  message.times = {.down_s = received - now_s_,
                   .compute_s = reading + computing,
                   .message_s = making,
                   .up_s = message.arrives ? arrived - start : 0,
                   .arrived_s = arrived,
                   .down_bits = down,
                   .up_bits = up,
                   .link = parts_.network.link(client, now_s_)};
  if (!message.arrives) message.ends_s = until_s;
  return message;
}

void RoundClock::close_buffer(RoundTimeline times, double bits) {
  last_ = std::move(times);
  now_s_ += parts_.server.device.seconds(parts_.work.aggregation(0, last_.cohort.size(), bits));
  close();
}

void RoundClock::persist(Archive& archive) {
  archive.section("clock");
  archive.value(now_s_);
}

}  // namespace fl
