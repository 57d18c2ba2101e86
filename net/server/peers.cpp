#include "net/server/peers.hpp"

#include <algorithm>

#include "net/wire/client_ranges.hpp"

namespace fl::net {

namespace {

// Returns "client 3" or "clients 3,5-7", and the verb.
std::string clients_have_left(const std::vector<std::uint32_t>& clients) {
  return (clients.size() == 1 ? "client " : "clients ") + to_text(ranges_of(clients)) + (clients.size() == 1 ? " has left" : " have left");
}

std::string seconds_text(double seconds) {
  std::string text = std::to_string(seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

std::string text_of_loss(const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s, const std::string& why) {
  return clients_have_left(clients) + when + ", and no peer takes the place within " + seconds_text(patience_s) +
         (why.empty() ? "" : ": " + why);
}

std::string text_of_loss(const Peers& peers, const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s) {
  const std::vector<MissingClient> missing = peers.missing();
  const auto first = clients.empty() ? missing.end() : std::ranges::find(missing, clients.front(), &MissingClient::client);
  return text_of_loss(clients, when, patience_s, first == missing.end() ? "" : first->why);
}

}  // namespace fl::net
