#include "net/server/remote_clients.hpp"

#include "fl_core/config/key_error.hpp"

namespace fl::net {

template <class T>
RemoteClients<T>::RemoteClients(Peers& peers, const ClientRequest<T>& request, const Presence& presence,
                                const std::function<bool()>& goes_on, Traffic& traffic)
    : peers_(peers),
      cohort_(peers, request, presence, goes_on, traffic),
      sums_(
          peers, request, presence, goes_on, [this] { return cohort_.begin(); }, traffic) {
  if (presence.min_clients > request.run.num_clients)
    throw key_error("--min-clients", "is " + std::to_string(presence.min_clients) + ", and the run has " +
                                         std::to_string(request.run.num_clients) + " clients: state a smaller number");
  if (request.measures.ever_needs(&MeasureCost::updates))
    throw key_error("evaluate", "a measure needs the clients' vectors before compression, which nobody sends over a network: leave it out");
}

template <class T>
RemoteClients<T>::~RemoteClients() {
  peers_.end_run();
}

template class RemoteClients<float>;
template class RemoteClients<double>;

RemoteSource::RemoteSource(Peers& peers, std::function<bool()> goes_on, const Presence& presence)
    : peers_(peers), goes_on_(std::move(goes_on)), presence_(presence) {}

std::unique_ptr<RunClients<float>> RemoteSource::clients_of(const ClientRequest<float>& request) {
  return std::make_unique<RemoteClients<float>>(peers_, request, presence_, goes_on_, traffic_);
}

std::unique_ptr<RunClients<double>> RemoteSource::clients_of(const ClientRequest<double>& request) {
  return std::make_unique<RemoteClients<double>>(peers_, request, presence_, goes_on_, traffic_);
}

}  // namespace fl::net
