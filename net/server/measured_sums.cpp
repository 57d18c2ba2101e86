#include "net/server/measured_sums.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

#include "fl_core/ops/norms.hpp"
#include "fl_core/round/kept_parameters.hpp"
#include "net/server/reported_norms.hpp"
#include "net/wire/raw_values.hpp"

namespace fl::net {

namespace {

constexpr double kUnknownSum = std::numeric_limits<double>::quiet_NaN();

// Copies the payload, whose length fits, to `values`.
template <class U>
void copy_payload(const Frame& frame, std::span<U> values) {
  RawReader reader(frame.payload);
  reader.read(values);
  reader.finish();
}

// Returns whether sums of such answers over all clients are finite.
template <class T>
bool is_finite_answer(MeasuredKind kind, const Frame& frame) {
  if (kind == MeasuredKind::correct) return true;
  const std::size_t P = frame.payload.size() / sizeof(T);
  if (kind != MeasuredKind::gradients) return std::abs(frame.header.partial_sums().sum()) <= most_reported<double>(1);
  std::vector<T> gradient(P);
  copy_payload(frame, std::span(gradient));
  return sum_of_squares(gradient.data(), P) <= most_reported<T>(P);
}

}  // namespace

template <class T>
OutgoingFrame MeasuredSums<T>::frame_of(const Order& order) const {
  const bool has_kept = !run_.kinds.kept.empty() && order.kind == MeasuredKind::correct;
  wire::Header header;
  wire::MeasureOrder& sent = *header.mutable_measure_order();
  sent.set_round(round_);
  sent.set_order(last_order_);
  sent.set_kind(static_cast<std::uint32_t>(order.kind));
  sent.set_first(order.first);
  sent.set_count(order.count);
  sent.set_has_mean(!order.mean.empty());
  sent.set_has_statistics(has_kept);
  Bytes payload;
  append(payload, order.model);
  append(payload, order.mean);
  if (has_kept) append(payload, std::span<const T>(shared_.slot(kInitialKept)));
  return make_frame(header, {std::make_shared<const Bytes>(std::move(payload))});
}

template <class T>
std::vector<HostId> MeasuredSums<T>::find_hosts(const Order& order) {
  std::vector<std::uint32_t> clients(order.count);
  std::iota(clients.begin(), clients.end(), order.first);
  const auto begun = Clock::now();
  for (Attendance attendance = peers_.attendance();;) {
    std::vector<HostId> hosts = peers_.hosts_of(clients);
    if (presence_.tolerates_absence() || std::ranges::find(hosts, kNobody) == hosts.end()) return hosts;
    if (Clock::now() - begun > std::chrono::duration<double>(presence_.patience_s)) {
      std::erase_if(clients, [&](std::uint32_t client) { return hosts[client - order.first] != kNobody; });
      throw Error(text_of_loss(peers_, clients, " before a measure", presence_.patience_s));
    }
    attendance = peers_.wait_for_change(attendance.num_changes, goes_on_);
  }
}

template <class T>
std::vector<std::uint32_t> MeasuredSums<T>::send(const Order& order) {
  round_ = std::max<std::uint32_t>(1, begin_());
  ++last_order_;
  const std::vector<HostId> hosts = find_hosts(order);
  std::vector<std::uint32_t> asked;
  std::vector<Expected> expected;
  for (std::uint32_t k = 0; k < order.count; ++k) {
    if (hosts[k] == kNobody) continue;
    asked.push_back(order.first + k);
    expected.push_back({Expected::Kind::sums, round_, last_order_, asked.back()});
  }
  peers_.expect(std::move(expected));
  const OutgoingFrame frame = frame_of(order);
  for (const HostId host : std::set<HostId>(hosts.begin(), hosts.end()))
    if (host != kNobody) peers_.send({.host = host, .moment = Moment::between, .round = round_, .frame = frame});
  return asked;
}

template <class T>
std::vector<std::optional<Frame>> MeasuredSums<T>::ask(const Order& order) {
  const std::vector<std::uint32_t> asked = send(order);
  Wait wait{.until = {}, .patience_s = presence_.patience_s, .tolerates_absence = presence_.tolerates_absence()};
  if (presence_.deadline_s > 0)
    wait.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(presence_.deadline_s));
  Answers received = peers_.collect(wait, goes_on_);
  std::vector<std::optional<Frame>> answers(order.count);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (received.arrived[i] == 0) continue;
    traffic_.measured_bytes += received.frames[i].payload.size();
    const std::string fault = fault_of(order, received.frames[i], asked[i]);
    if (fault.empty())
      answers[asked[i] - order.first] = std::move(received.frames[i]);
    else
      peers_.reject(asked[i], round_, fault, Penalty::counts);
  }
  leave_out_odd_ones(order, answers);
  is_complete_ = std::ranges::all_of(answers, [](const auto& answer) { return answer.has_value(); });
  return answers;
}

// Returns why a frame is no answer to the order, or "".
template <class T>
std::string MeasuredSums<T>::fault_of(const Order& order, const Frame& frame, std::uint32_t client) const {
  const wire::PartialSums& sums = frame.header.partial_sums();
  const std::size_t payload = order.kind == MeasuredKind::gradients ? run_.P * sizeof(T) : 0;
  if (frame.payload.size() != payload)
    return "its sums have " + std::to_string(frame.payload.size()) + " bytes, not " + std::to_string(payload);
  if (order.kind == MeasuredKind::correct && sums.correct() > problem_.own_labels(client))
    return "it counts more labels than its rows have";
  if (order.kind != MeasuredKind::distances) return {};
  if (sums.sum() < 0) return "its squared distance is negative";
  const double distance = std::sqrt(sums.sum()), own = gradient_length_[client];
  const double mean = std::sqrt(sum_of_squares(order.mean.data(), order.mean.size()));
  const auto is_possible = [this](double a, double b, double c) { return is_possible_sum<T>(a, b, c, run_.P); };
  if (!is_possible(distance, own, mean) || !is_possible(own, distance, mean) || !is_possible(mean, distance, own))
    return "its squared distance contradicts its gradient";
  return {};
}

// A sum that is not finite is a result if the model has diverged: if the server's own test rows say so, or if at least half of the clients
// see it. Otherwise it is left out, so that one client cannot end the run. That breaks no rule, because the client's rows may be so: it is
// counted by its reason, and costs the peer nothing.
template <class T>
void MeasuredSums<T>::leave_out_odd_ones(const Order& order, std::vector<std::optional<Frame>>& answers) {
  std::vector<std::size_t> odd;
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i] && !is_finite_answer<T>(order.kind, *answers[i])) odd.push_back(i);
  if (odd.empty() || 2 * odd.size() >= answers.size() || test_rows_tell_of_divergence(order.model)) return;
  for (const std::size_t i : odd) {
    answers[i].reset();
    peers_.reject(order.first + static_cast<std::uint32_t>(i), round_, "its sums are not finite, or too large", Penalty::none);
  }
}

// Returns whether the mean loss of the test rows is not finite, or a large multiple of its value for a model of zeros, which every run and
// every part of a run that goes on can compute.
template <class T>
bool MeasuredSums<T>::test_rows_tell_of_divergence(std::span<const T> x) {
  constexpr double kMultiple = 1e6;
  const Dataset<T>* test = problem_.test();
  if (test == nullptr || test == &problem_.train() || test->num_rows == 0) return false;
  std::vector<std::uint32_t> rows(test->num_rows);
  std::iota(rows.begin(), rows.end(), 0U);
  const std::vector<T> zeros(x.size());
  std::array<double, 2> losses{};
  pool_.parallel_for(2, [&](std::uint32_t k, const Exec& exec) {
    losses[k] = problem_.model().loss_sum(exec, k == 0 ? x.data() : zeros.data(), *test, rows, nullptr);
  });
  return !std::isfinite(losses[0]) || losses[0] > kMultiple * std::abs(losses[1]);
}

template <class T>
std::vector<double> MeasuredSums<T>::losses(std::span<const T> x) {
  std::vector<double> sums;
  for (const auto& answer : ask({MeasuredKind::losses, 0, static_cast<std::uint32_t>(run_.num_clients), x}))
    sums.push_back(answer ? answer->header.partial_sums().sum() : kUnknownSum);
  return sums;
}

template <class T>
std::vector<double> MeasuredSums<T>::correct(std::span<const T> x) {
  std::vector<double> counts;
  for (const auto& answer : ask({MeasuredKind::correct, 0, static_cast<std::uint32_t>(run_.num_clients), x}))
    counts.push_back(answer ? static_cast<double>(answer->header.partial_sums().correct()) : kUnknownSum);
  return counts;
}

template <class T>
void MeasuredSums<T>::read_gradients(std::span<const T> x, std::uint32_t first, BatchView<T> out) {
  const std::vector<std::optional<Frame>> answers = ask({MeasuredKind::gradients, first, out.K, x});
  for (std::uint32_t k = 0; k < out.K; ++k) {
    const std::span<T> row(out.row(k), run_.P);
    if (answers[k])
      copy_payload(*answers[k], row);
    else
      std::ranges::fill(row, std::numeric_limits<T>::quiet_NaN());
    gradient_length_[first + k] = std::sqrt(sum_of_squares(row.data(), row.size()));
  }
}

template <class T>
void MeasuredSums<T>::read_distances(std::span<const T> x, std::span<const double> mean, std::uint32_t first, std::span<double> out) {
  const std::vector<std::optional<Frame>> answers = ask({MeasuredKind::distances, first, static_cast<std::uint32_t>(out.size()), x, mean});
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = answers[k] ? answers[k]->header.partial_sums().sum() : kUnknownSum;
}

template class MeasuredSums<float>;
template class MeasuredSums<double>;

std::string read_kept_move(const Frame& frame, std::span<double> move) {
  std::ranges::fill(move, 0.0);
  if (frame.payload.size() != move.size_bytes())
    return "the moves of the parameters that it keeps have " + std::to_string(frame.payload.size()) + " bytes, not " +
           std::to_string(move.size_bytes());
  copy_payload(frame, move);
  if (std::ranges::all_of(move, [](double value) { return std::abs(value) <= most_reported<double>(1); })) return {};
  std::ranges::fill(move, 0.0);
  return "the moves of the parameters that it keeps are not finite";
}

}  // namespace fl::net
