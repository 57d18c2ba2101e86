#include "net/server/pending_connections.hpp"

#include <utility>

namespace fl::net {

std::shared_ptr<PendingConnections::Place> PendingConnections::add(const std::shared_ptr<Connection>& connection) {
  auto place = std::make_shared<Place>(*this, ++last_id_);
  entries_.emplace(last_id_, Entry{.place = place, .connection = connection, .begun = Clock::now()});
  return place;
}

Clock::time_point PendingConnections::end_of_grace(Clock::time_point now) const {
  return entries_.empty() ? now : entries_.begin()->second.begun + grace_;
}

void PendingConnections::replace_oldest() {
  if (entries_.empty()) return;
  const Entry oldest = std::move(entries_.begin()->second);
  entries_.erase(entries_.begin());
  if (const std::shared_ptr<Place> place = oldest.place.lock()) place->is_replaced_ = true;
  oldest.connection->close();
}

}  // namespace fl::net
