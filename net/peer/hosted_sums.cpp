#include "net/peer/hosted_sums.hpp"

#include <algorithm>

#include "fl_core/round/kept_parameters.hpp"
#include "net/wire/measured_kind.hpp"
#include "net/wire/raw_values.hpp"

namespace fl::net {

namespace {

constexpr std::size_t kClientsPerPass = 32;  // vectors held at a time

wire::Header header_of(std::uint32_t round, std::uint32_t order, std::uint32_t client) {
  wire::Header header;
  wire::PartialSums& sums = *header.mutable_partial_sums();
  sums.set_round(round);
  sums.set_order(order);
  sums.set_client(client);
  return header;
}

template <class U>
std::shared_ptr<const Bytes> raw_bytes(std::span<const U> values) {
  Bytes bytes;
  append(bytes, values);
  return std::make_shared<const Bytes>(std::move(bytes));
}

}  // namespace

template <class T>
auto HostedSums<T>::read(const Frame& frame, const std::vector<ClientRange>& hosted) -> Order {
  Order order{frame.header.measure_order(), {}, std::vector<T>(run_.P), {}};
  const wire::MeasureOrder& header = order.header;
  const std::uint64_t end = std::uint64_t{header.first()} + header.count();
  if (header.kind() >= kNumMeasuredKinds || end > run_.num_clients) throw ProtocolError("an order of sums that this run does not have");
  if (header.has_mean() != (header.kind() == static_cast<std::uint32_t>(MeasuredKind::distances)))
    throw ProtocolError("a mean travels with an order of distances alone");
  RawReader payload(frame.payload);
  payload.read(std::span(order.model));
  order.mean.resize(header.has_mean() ? run_.P : 0);
  payload.read(std::span(order.mean));
  if (header.has_statistics()) {
    if (run_.kinds.kept.empty()) throw ProtocolError("kept parameters in a run whose clients keep none");
    payload.read(shared_.slot(kInitialKept));
  }
  payload.finish();
  for (const ClientRange& range : hosted)
    for (std::uint64_t client = std::max(range.first, header.first()); client <= range.last && client < end; ++client)
      order.clients.push_back(static_cast<std::uint32_t>(client));
  return order;
}

template <class T>
std::vector<OutgoingFrame> HostedSums<T>::answer(const Frame& frame, const std::vector<ClientRange>& hosted) {
  const Order order = read(frame, hosted);
  switch (static_cast<MeasuredKind>(order.header.kind())) {
    case MeasuredKind::losses: return losses(order);
    case MeasuredKind::correct: return correct(order);
    case MeasuredKind::gradients:
    case MeasuredKind::distances: break;
  }
  return gradients(order);
}

template <class T>
std::vector<OutgoingFrame> HostedSums<T>::losses(const Order& order) {
  std::vector<double> sums(order.clients.size());
  pool_.parallel_for(static_cast<std::uint32_t>(sums.size()), [&](std::uint32_t k, const Exec& exec) {
    sums[k] = problem_.model().loss_sum(exec, order.model.data(), problem_.train(), problem_.shards()[order.clients[k]], nullptr);
  });
  std::vector<OutgoingFrame> frames;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    wire::Header header = header_of(order.header.round(), order.header.order(), order.clients[k]);
    header.mutable_partial_sums()->set_sum(sums[k]);
    frames.push_back(make_frame(header));
  }
  return frames;
}

// Judges each client with the parameters that it keeps. A client without rows of its own has 0 labels right.
template <class T>
std::vector<OutgoingFrame> HostedSums<T>::correct(const Order& order) {
  const ClientRows<T>& own = problem_.client_rows();
  std::vector<OutgoingFrame> frames;
  for (std::size_t first = 0; first < order.clients.size(); first += kClientsPerPass) {
    const std::size_t count = std::min(kClientsPerPass, order.clients.size() - first);
    std::vector<std::vector<T>> models;
    for (std::size_t k = 0; k < count; ++k) models.push_back(side_.probe().own_model(order.clients[first + k], order.model));
    std::vector<std::uint64_t> right(count);
    pool_.parallel_for(static_cast<std::uint32_t>(count), [&](std::uint32_t k, const Exec& exec) {
      const auto place = std::ranges::lower_bound(own.clients, order.clients[first + k]);
      if (place == own.clients.end() || *place != order.clients[first + k]) return;
      const Shard& rows = own.shards[static_cast<std::size_t>(place - own.clients.begin())];
      static_cast<void>(problem_.model().loss_sum(exec, models[k].data(), *own.data, rows, &right[k]));
    });
    for (std::size_t k = 0; k < count; ++k) {
      wire::Header header = header_of(order.header.round(), order.header.order(), order.clients[first + k]);
      header.mutable_partial_sums()->set_correct(right[k]);
      frames.push_back(make_frame(header));
    }
  }
  return frames;
}

template <class T>
void HostedSums<T>::compute(const Order& order, std::size_t first, std::size_t count) {
  const std::size_t P = run_.P;
  gradients_.assign(count * P, T{});
  pool_.parallel_for(static_cast<std::uint32_t>(count), [&](std::uint32_t k, const Exec& exec) {
    const std::span<const std::uint32_t> rows = problem_.shards()[order.clients[first + k]];
    problem_.model().gradient(exec, shared_view(order.model.data(), 1, P), std::span(&rows, 1),
                              {gradients_.data() + k * P, nullptr, 1, P, P}, nullptr);
    clear_ranges(run_.kinds.kept, gradients_.data() + k * P);
  });
}

// Sends the gradients, or what they are away from their mean.
template <class T>
std::vector<OutgoingFrame> HostedSums<T>::gradients(const Order& order) {
  std::vector<OutgoingFrame> frames;
  for (std::size_t first = 0; first < order.clients.size(); first += kClientsPerPass) {
    const std::size_t count = std::min(kClientsPerPass, order.clients.size() - first);
    compute(order, first, count);
    for (std::size_t k = 0; k < count; ++k) {
      wire::Header header = header_of(order.header.round(), order.header.order(), order.clients[first + k]);
      const std::span<const T> gradient = std::span<const T>(gradients_).subspan(k * run_.P, run_.P);
      if (order.header.has_mean()) {
        header.mutable_partial_sums()->set_sum(distance_sq(gradient.data(), order.mean.data(), run_.P));
        frames.push_back(make_frame(header));
      } else {
        frames.push_back(make_frame(header, {raw_bytes(gradient)}));
      }
    }
  }
  return frames;
}

template <class T>
OutgoingFrame kept_move(std::uint32_t round, std::uint32_t client, std::uint32_t position, std::size_t num_kept, ClientProbe<T>& probe) {
  std::vector<double> move(num_kept);
  probe.read_kept_move(position, move);
  return make_frame(header_of(round, 0, client), {raw_bytes(std::span<const double>(move))});
}

template class HostedSums<float>;
template class HostedSums<double>;
template OutgoingFrame kept_move(std::uint32_t, std::uint32_t, std::uint32_t, std::size_t, ClientProbe<float>&);
template OutgoingFrame kept_move(std::uint32_t, std::uint32_t, std::uint32_t, std::size_t, ClientProbe<double>&);

}  // namespace fl::net
