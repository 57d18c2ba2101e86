#include "net/remote_clients.hpp"

#include "fl_core/config/key_error.hpp"

namespace fl::net {

namespace {

// Messages may be that much longer than a dense vector, and this much more (docs/protocol.md).
constexpr std::uint64_t kMostDense = 4, kMostHeader = 64 * 1024;

std::shared_ptr<const Bytes> bytes_of(const std::string& text) {
  const auto raw = std::as_bytes(std::span(text));
  return std::make_shared<const Bytes>(raw.begin(), raw.end());
}

}  // namespace

template <class T>
RemoteClients<T>::RemoteClients(PeerHub& hub, const ClientRequest<T>& request, const std::function<bool()>& goes_on, Traffic& traffic)
    : hub_(hub), cohort_(hub, request, goes_on, traffic) {
  if (request.run.local_statistics)
    throw key_error("server.statistics", "statistics that stay with the clients cannot be measured over a network");
  if (request.measures.ever_needs(&MeasureCost::updates))
    throw key_error("evaluate", "a measure needs the clients' vectors before compression, which nobody sends over a network: leave it out");
  hub_.begin_run({.run = request.cell.hash,
                  .split = request.problem.split_hash(),
                  .scenario = bytes_of(request.cell.resolved_toml),
                  .num_clients = static_cast<std::uint32_t>(request.run.num_clients),
                  .most_message_bytes = kMostDense * request.run.P * sizeof(T) + kMostHeader});
  if (!hub_.wait_until_ready(goes_on)) throw Interrupted();
}

template <class T>
RemoteClients<T>::~RemoteClients() {
  hub_.end_run();
}

template class RemoteClients<float>;
template class RemoteClients<double>;

RemoteSource::RemoteSource(PeerHub& hub, std::function<bool()> goes_on) : hub_(hub), goes_on_(std::move(goes_on)) {}

std::unique_ptr<RunClients<float>> RemoteSource::clients_of(const ClientRequest<float>& request) {
  return std::make_unique<RemoteClients<float>>(hub_, request, goes_on_, traffic_);
}

std::unique_ptr<RunClients<double>> RemoteSource::clients_of(const ClientRequest<double>& request) {
  return std::make_unique<RemoteClients<double>>(hub_, request, goes_on_, traffic_);
}

}  // namespace fl::net
