#include "net/server/remote_clients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "fl_core/config/key_error.hpp"

namespace fl::net {

namespace {

// Returns the rules for the clients of a run: the limit of a round is that of its delivery.
template <class T>
Presence rules_of(Presence presence, const ClientRequest<T>& request) {
  const std::vector<double> nothing(std::max<std::size_t>(1, request.cohort.most), std::numeric_limits<double>::infinity());
  std::vector<std::uint8_t> counts(nothing.size());
  const double limit_s = request.delivery.decide(nothing, request.cohort.awaited == 0 ? nothing.size() : request.cohort.awaited, counts);
  presence.deadline_s = std::isfinite(limit_s) ? limit_s : 0;
  return presence;
}

// Sets an option of a part from an option of the command line.
void set_option(Part& part, const std::string& name, double value, const std::string& option) {
  Schema schema = part.options.schema();
  if (const auto refused = schema.find(name)->assign(Value{value})) throw key_error(option, *refused);
}

// Returns "first" (over_selection = 2, deadline_s = 3).
std::string words_of(Part part) {
  std::string options;
  Schema schema = part.options.schema();
  for (const Field& field : schema.fields())
    if (field.is_set()) options += (options.empty() ? " (" : ", ") + field.name + " = " + to_string(field.value());
  return '"' + part.kind + '"' + options + (options.empty() ? "" : ")");
}

}  // namespace

template <class T>
RemoteClients<T>::RemoteClients(Peers& peers, const ClientRequest<T>& request, const Presence& presence,
                                const std::function<bool()>& goes_on, Traffic& traffic)
    : peers_(peers),
      cohort_(peers, request, rules_of(presence, request), goes_on, traffic),
      sums_(
          peers, request, rules_of(presence, request), goes_on, [this] { return cohort_.begin(); }, traffic) {
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

Part RemoteSource::delivery_of(const Part& written) const {
  if (presence_.deadline_s <= 0 && presence_.over_select == 1) return written;
  const bool is_first = presence_.over_select != 1;
  Part made = default_part("delivery", is_first ? "first" : "deadline");
  std::string option;
  if (is_first) {
    option = "--over-select";
    set_option(made, "over_selection", presence_.over_select, option);
  }
  if (presence_.deadline_s > 0) {
    set_option(made, "deadline_s", presence_.deadline_s, "--deadline");
    option += option.empty() ? "--deadline" : " and --deadline";
  }
  if (written.kind != "all" && words_of(written) != words_of(made))
    throw key_error("delivery.kind",
                    "[delivery] says " + words_of(written) + ", and " + option + " means " + words_of(made) + ": leave out one of the two");
  return made;
}

std::unique_ptr<RunClients<float>> RemoteSource::clients_of(const ClientRequest<float>& request) {
  return std::make_unique<RemoteClients<float>>(peers_, request, presence_, goes_on_, traffic_);
}

std::unique_ptr<RunClients<double>> RemoteSource::clients_of(const ClientRequest<double>& request) {
  return std::make_unique<RemoteClients<double>>(peers_, request, presence_, goes_on_, traffic_);
}

}  // namespace fl::net
